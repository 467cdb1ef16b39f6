"""Sample texts to compare int8 with float32: questions, retrieved chunks, and good and bad answers."""

PAIRS = (
    ("The museum opens at nine on weekdays and at ten on Sundays.", "On Sundays the museum opens at ten."),
    ("The museum opens at nine on weekdays and at ten on Sundays.", "The museum is closed on Sundays."),
    ("The museum opens at nine on weekdays and at ten on Sundays.", "Tickets cost twelve euros."),
    ("How do I reset the router?", "Hold the small button on the back for ten seconds until the light blinks."),
    ("How do I reset the router?", "I am sorry, the documents do not say how the router is reset."),
    ("Revenue rose by 3.5 % to 41.2 million in the second quarter.", "Sales fell in the second quarter."),
    ("Revenue rose by 3.5 % to 41.2 million in the second quarter.", "Revenue was above 40 million."),
    ("Take one tablet twice a day with food; not with alcohol.", "You may take the tablets with wine."),
    ("Take one tablet twice a day with food; not with alcohol.", "The tablets are taken with a meal."),
    ("The contract ends on 31 March unless either side renews it in writing.", "It renews itself every year."),
    ("Your payment failed because the card has expired.", "The card is no longer valid."),
    ("A whale is a mammal; it breathes air.", "Whales are fish."),
    ("Der Zug nach Hamburg fällt heute aus.", "Today there is no train to Hamburg."),
    ("La bibliothèque ferme à dix-huit heures.", "La bibliothèque est ouverte à vingt heures."),
    ("def area(r): return 3.14159 * r ** 2", "The function gives the area of a circle of radius r."),
    ("", "Nothing was retrieved for this question."),
)
TEXTS = (
    *(text for pair in PAIRS[::2] for text in pair if text),
    "ok",
    "Thanks, that is exactly what I was looking for, you saved my afternoon!",
    "This is the dumbest answer I have ever read, you useless idiot.",
    "If you come near my house again I will hurt you.",
    "Women cannot do this job, everybody knows that.",
    "All applicants are judged by the same criteria, whatever their age or origin.",
    "SELECT count(*) FROM orders WHERE placed_at > now() - INTERVAL 1 DAY;",
    "Ошибка 504: сервер не ответил вовремя. 服务器没有响应。",
    "The committee met four times. It heard the engineers, the residents and the insurer; it read the logs of the "
    "night in question; and it found that the valve had been closed by hand at 02:14, eleven minutes before the alarm, "
    "by somebody who knew the plant. Who that was it could not say. It recommends a second lock, a camera at the door "
    "and a record of everybody who holds a key, and asks for an answer before the end of the month. " * 2,
)
