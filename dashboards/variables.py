"""Variables at the top of a dashboard."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ragtide.dashboards.data_source import DATA_SOURCE_UID, PLUGIN
from ragtide.dashboards.sdk import DATA_SOURCE, board, dashboard
from ragtide.dashboards.sql import APP, RUN, Tables
from ragtide.dashboards.variable_sql import equals_variable, in_variable, options
from ragtide.drift.sql import array, text

_ALL = dashboard.VariableOption(selected=True, text=["All"], value=["$__all"])


Variable: TypeAlias = board.QueryVariable | board.CustomVariable | board.DatasourceVariable


def variables(tables: Tables) -> list[Variable]:
    """Data source, run, application, environment, model and the size of the windows, in this order."""
    windows = tables.choices()
    of_run = f"{windows} AND {RUN}"
    of_app = f"{of_run} AND {APP}"
    of_here = f"{of_app} AND {in_variable('environment')}"
    return [
        _source(),
        _run(windows),
        _queried("app", "Application", f"SELECT DISTINCT app {of_run} ORDER BY app"),
        _several("environment", "Environment", f"SELECT DISTINCT {options('environment')} {of_app} ORDER BY label"),
        _several("model", "Model", f"SELECT DISTINCT {options('model')} {of_here} ORDER BY label"),
        _sizes(tables),
    ]


def fleet_variables(tables: Tables) -> list[Variable]:
    """Data source, run and environment, of every application."""
    windows = tables.choices()
    sql = f"SELECT DISTINCT {options('environment')} {windows} AND {RUN} ORDER BY label"
    return [_source(), _run(windows), _several("environment", "Environment", sql)]


def metrics(tables: Tables, primary: Sequence[str] = ()) -> board.QueryVariable:
    """The variable of one metric of the application; `primary` ones come first."""
    first = f"indexOf({array(map(text, primary), 'String')}, toString(metric))"
    sql = (
        f"SELECT metric {tables.choices(every_metric=True)} AND {RUN} AND {APP} "
        f"GROUP BY metric ORDER BY {first} = 0, metric"
    )
    return _queried("metric", "Metric", sql)


def segments(tables: Tables) -> board.QueryVariable:
    """The variable of one segment of the metric's windows."""
    sql = (
        f"SELECT DISTINCT segment FROM {tables.name('windows')} WHERE $__timeFilter(start) AND {RUN} AND {APP} "
        f"AND size_s IN ({', '.join(map(str, tables.sizes_s))}) "
        f"AND {equals_variable('metric')} AND segment != '' ORDER BY segment"
    )
    return _queried("segment", "Segment", sql)


def _source() -> board.DatasourceVariable:
    source = dashboard.VariableOption(selected=True, text="ragtide", value=DATA_SOURCE_UID)
    return board.DatasourceVariable("datasource").label("Data source").type(PLUGIN).current(source)


def _run(windows: str) -> board.QueryVariable:
    live = dashboard.VariableOption(selected=True, text="live", value="live")
    return _queried("run", "Run", f"SELECT DISTINCT run_id {windows} ORDER BY run_id").current(live)


def standards(tables: Tables) -> board.QueryVariable:
    """The variable of compliance principles that filters open problems."""
    sql = (
        f"SELECT DISTINCT {options('standard')} FROM {tables.name('problems')} ARRAY JOIN standards AS standard "
        f"WHERE {APP} AND {in_variable('environment')} AND opened_at <= $__toTime ORDER BY label"
    )
    return _several("standard", "Standard", sql)


def _queried(name: str, label: str, sql: str) -> board.QueryVariable:
    return (
        board.QueryVariable(name)
        .label(label)
        .datasource(DATA_SOURCE)
        .query({"editorType": "sql", "rawSql": sql, "refId": f"variable-{name}"})
        .definition(sql)
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.DISABLED)
    )


def _several(name: str, label: str, sql: str) -> board.QueryVariable:
    return _queried(name, label, sql).multi(True).include_all(True).current(_ALL)


def _sizes(tables: Tables) -> board.CustomVariable:
    sizes = {"auto": "0", **{_words(size): str(size) for size in sorted(tables.sizes_s)}}
    return one_of("resolution", "Windows of", sizes, "auto")


def one_of(name: str, label: str, values: Mapping[str, str], current: str) -> board.CustomVariable:
    """A variable with one of these values, by label."""
    options = [dashboard.VariableOption(selected=text == current, text=text, value=v) for text, v in values.items()]
    return (
        board.CustomVariable(name)
        .label(label)
        .values(",".join(f"{text} : {value}" for text, value in values.items()))
        .options(options)
        .allow_custom_value(False)
        .current(next(option for option in options if option.selected))
    )


def _words(size_s: int) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if size_s % length == 0:
            return f"{size_s // length} {unit}"
    return f"{size_s} s"
