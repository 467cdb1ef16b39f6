-- What dashboards and announcements read of problems; `drift.problems` folds the same events for everything else.

CREATE OR REPLACE VIEW problems AS
SELECT problem_id, episode,
       multiIf(last_event = 'resolved', 'resolved', last_event = 'pending', 'pending', 'open') AS state,
       if(countIf(event = 'opened') = 0, min(at), minIf(at, event = 'opened')) AS opened_at,
       maxIf(at, event IN ('pending', 'opened', 'reopened', 'updated')) AS last_seen_at,
       if(state = 'resolved', CAST(maxIf(at, event = 'resolved'), 'Nullable(DateTime64(3, \'UTC\'))'), NULL) AS resolved_at,
       any(app) AS app, any(environment) AS environment, any(model) AS model, any(aspect) AS aspect,
       any(metric) AS metric, any(segment) AS segment, any(segment_value) AS segment_value,
       arraySort(groupUniqArrayIf(kind, kind != '')) AS kinds,
       argMaxIf(type, order_of, of_state) AS type,
       argMaxIf(severity, order_of, of_state) AS severity,
       argMaxIf(code, order_of, of_state) AS code,
       argMaxIf(standards, order_of, of_state) AS standards,
       argMaxIf(description, order_of, of_state AND description != '') AS description,
       argMaxIf(attributes, order_of, of_state) AS attributes,
       argMaxIf(examples, order_of, of_state AND notEmpty(examples)) AS examples,
       argMaxIf(actions, order_of, of_state AND notEmpty(actions)) AS actions,
       argMaxIf(actor, order_of, event = 'acknowledged') AS acknowledged_by,
       argMaxIf(event, order_of, of_state) AS last_event
FROM
(
    SELECT *, (at, event_id) AS order_of, event IN ('pending', 'opened', 'reopened', 'updated', 'resolved') AS of_state
    FROM problem_events FINAL
)
GROUP BY problem_id, episode;
