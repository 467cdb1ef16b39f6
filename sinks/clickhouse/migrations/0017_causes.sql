-- The view of problems anew: why the metric moved, of the last opening. `drift.problems.folding.fold` says the same
-- of the same events, and a test compares the two.

CREATE OR REPLACE VIEW problems AS
SELECT problem_id, episode,
       multiIf(countIf(turns) = 0, 'pending', argMaxIf(event, place, turns) IN ('opened', 'reopened'), 'open',
               argMaxIf(event, place, turns)) AS state,
       anyIf(app, of_job) AS app, anyIf(environment, of_job) AS environment, anyIf(model, of_job) AS model,
       anyIf(aspect, of_job) AS aspect, anyIf(metric, of_job) AS metric, anyIf(segment, of_job) AS segment,
       anyIf(segment_value, of_job) AS segment_value,
       arrayDistinct(arrayMap(pair -> pair.2, arraySort(groupArrayIf((place, kind), of_job)))) AS kinds,
       arrayFilter(one -> has(groupUniqArrayIf(kind, holds), one), kinds) AS holding,
       argMaxIf(type, weight, of_job) AS type,
       argMaxIf(severity, weight, of_job) AS severity,
       argMaxIf(code, weight, of_job) AS code,
       argMaxIf(standards, weight, of_job) AS standards,
       argMaxIf(description, weight, of_job) AS description,
       argMaxIf(attributes, weight, of_job) AS attributes,
       argMaxIf(examples, weight, of_job AND notEmpty(examples)) AS examples,
       argMaxIf(actions, weight, of_job) AS actions,
       argMaxIf(rule_id, weight, of_job) AS rule_id,
       minIf(at, of_job) AS first_seen_at,
       ifNull(maxOrNullIf(at, of_job AND event NOT IN ('eased', 'resolved')), first_seen_at) AS last_seen_at,
       minOrNullIf(at, opens) AS opened_at,
       if(argMaxIf(event, place, opens OR event = 'resolved') = 'resolved', maxOrNullIf(at, event = 'resolved'), NULL)
           AS resolved_at,
       countIf(opens) AS openings,
       argMaxIf(if(event = 'unacked', '', person), place, known AND event IN ('acked', 'unacked')) AS acked_by,
       argMaxIf(person, place, known AND event = 'accepted') AS accepted_by,
       any(mute.1) AS muted_by,
       any(mute.2) AS muted_until,
       argMaxIf(why.1, place, explains) AS explanation,
       argMaxIf(why.2, place, explains) AS cause
FROM
(
    -- Of the kinds that hold the highest severity speaks, then the one that spoke last; of its own words the last.
    SELECT *, known AND event = 'explained' AND JSONExtractUInt(attributes, 'opening') = openings_in_all AS explains,
           (description, attributes) AS why, of_job AND begun > eased AND begun > over AS holds,
           (holds, if(holds, severity_then, 0), spoke, place) AS weight
    FROM
    (
        SELECT *,
               countIf(of_job) OVER (PARTITION BY problem_id, episode ORDER BY place ROWS UNBOUNDED PRECEDING) > 0
                   AS known,
               countIf(opens) OVER (PARTITION BY problem_id, episode) AS openings_in_all,
               maxIf(place, event = 'resolved') OVER (PARTITION BY problem_id, episode) AS over,
               maxIf(place, opens OR event = 'joined') OVER by_kind AS begun,
               maxIf(place, event = 'eased') OVER by_kind AS eased,
               maxIf(place, of_job) OVER by_kind AS spoke,
               argMaxIf(indexOf(['low', 'medium', 'high'], toString(severity)), place, of_job) OVER by_kind
                   AS severity_then
        FROM
        (
            SELECT *, countIf(event = 'withdrawn' AND unopened) OVER (PARTITION BY problem_id, episode
                       ORDER BY place DESC) AS withdrawals_ahead
            FROM
            (
                SELECT *,
                       countIf(opens) OVER (PARTITION BY problem_id, episode ORDER BY place ROWS UNBOUNDED PRECEDING) = 0
                           AS unopened,
                       argMaxIf((if(event = 'unmuted', '', person), if(event = 'unmuted', NULL, until)), place,
                                event IN ('muted', 'unmuted')) OVER (PARTITION BY problem_id) AS mute
                FROM
                (
                    SELECT *, event IN ('opened', 'reopened') AS opens, if(actor = '', 'unknown', actor) AS person,
                           parseDateTime64BestEffortOrNull(JSONExtractString(attributes, 'until'), 3, 'UTC') AS until,
                           event IN ('pending', 'opened', 'reopened', 'resolved') AS turns,
                           turns OR event IN ('joined', 'updated', 'eased') AS of_job,
                           (at, indexOf(['pending', 'withdrawn', 'opened', 'reopened', 'joined', 'updated', 'accepted',
                                         'eased', 'resolved', 'explained', 'acked', 'unacked', 'muted', 'unmuted'],
                                        toString(event)), event_id) AS place
                    FROM problem_events FINAL
                )
            )
        )
        WHERE withdrawals_ahead = 0
        WINDOW by_kind AS (PARTITION BY problem_id, episode, kind)
    )
)
GROUP BY problem_id, episode
HAVING countIf(of_job) > 0;
