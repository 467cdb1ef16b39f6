-- The view of problems anew: an acknowledgement between a withdrawal and the next sign of trouble belongs to neither.

CREATE OR REPLACE VIEW problems AS
SELECT problem_id, episode,
       multiIf(countIf(turns) = 0, 'pending', argMaxIf(event, place, turns) IN ('opened', 'reopened'), 'open',
               argMaxIf(event, place, turns)) AS state,
       any(app) AS app, any(environment) AS environment, any(model) AS model, any(aspect) AS aspect,
       any(metric) AS metric, any(segment) AS segment, any(segment_value) AS segment_value,
       arrayDistinct(arrayMap(pair -> pair.2, arraySort(groupArrayIf((place, kind), of_rule)))) AS kinds,
       argMaxIf(type, place, of_rule) AS type,
       argMaxIf(severity, place, of_rule) AS severity,
       argMaxIf(code, place, of_rule) AS code,
       argMaxIf(standards, place, of_rule) AS standards,
       argMaxIf(description, place, of_rule) AS description,
       argMaxIf(attributes, place, of_rule) AS attributes,
       argMaxIf(examples, place, of_rule AND notEmpty(examples)) AS examples,
       argMaxIf(actions, place, of_rule) AS actions,
       argMaxIf(rule_id, place, of_rule) AS rule_id,
       minIf(at, of_rule) AS first_seen_at,
       ifNull(maxOrNullIf(at, of_rule AND event != 'resolved'), first_seen_at) AS last_seen_at,
       minOrNullIf(at, opens) AS opened_at,
       if(argMaxIf(event, place, opens OR event = 'resolved') = 'resolved', maxOrNullIf(at, event = 'resolved'), NULL)
           AS resolved_at,
       countIf(opens) AS openings,
       argMaxIf(if(event = 'unacked', '', person), place, known AND event IN ('acked', 'unacked')) AS acked_by,
       argMaxIf(if(event = 'unmuted', '', person), place, known AND event IN ('muted', 'unmuted')) AS muted_by
FROM
(
    SELECT *, countIf(of_rule) OVER (PARTITION BY problem_id, episode ORDER BY place ROWS UNBOUNDED PRECEDING) > 0 AS known
    FROM
    (
        SELECT *, countIf(event = 'withdrawn' AND unopened) OVER (PARTITION BY problem_id, episode ORDER BY place DESC)
                   AS withdrawals_ahead
        FROM
        (
            SELECT *, countIf(opens) OVER (PARTITION BY problem_id, episode ORDER BY place ROWS UNBOUNDED PRECEDING) = 0
                       AS unopened
            FROM
            (
                SELECT *, event IN ('opened', 'reopened') AS opens, if(actor = '', 'unknown', actor) AS person,
                       event IN ('pending', 'opened', 'reopened', 'resolved') AS turns,
                       turns OR event = 'updated' AS of_rule,
                       (at, indexOf(['pending', 'withdrawn', 'opened', 'reopened', 'updated', 'resolved', 'acked',
                                     'unacked', 'muted', 'unmuted'], toString(event)), event_id) AS place
                FROM problem_events FINAL
            )
        )
    )
    WHERE withdrawals_ahead = 0
)
GROUP BY problem_id, episode
HAVING countIf(of_rule) > 0;
