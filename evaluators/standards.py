"""Compliance principles of evaluators and problems (NIST AI RMF, SR 11-7)."""

from collections.abc import Collection

# NIST AI RMF
ACCOUNTABLE_AND_TRANSPARENT = "Accountable and Transparent"
FAIR = "Fair"
PRIVACY_ENHANCED = "Privacy Enhanced"
SAFE = "Safe"
SECURE_AND_RESILIENT = "Secure and Resilient"
VALID_AND_RELIABLE = "Valid and Reliable"
# SR 11-7
CONCEPTUAL_SOUNDNESS = "Conceptual Soundness"
ONGOING_MONITORING = "Ongoing Monitoring"
OUTCOMES_ANALYSIS = "Outcomes Analysis"
STANDARDS = (
    *(ACCOUNTABLE_AND_TRANSPARENT, FAIR, PRIVACY_ENHANCED, SAFE, SECURE_AND_RESILIENT, VALID_AND_RELIABLE),
    *(CONCEPTUAL_SOUNDNESS, ONGOING_MONITORING, OUTCOMES_ANALYSIS),
)

_OF_DOMAIN = {"privacy": (PRIVACY_ENHANCED, SECURE_AND_RESILIENT), "fairness": (FAIR, SAFE)}
_GROUND_TRUTH = frozenset({"expected", "labels", "relevance", "boxes"})


def standards_of(domain: str, inputs: Collection[str]) -> tuple[str, ...]:
    """Return the default principles of a domain. Comparison with a ground truth adds one."""
    served = _OF_DOMAIN.get(domain, (VALID_AND_RELIABLE, OUTCOMES_ANALYSIS))
    return (*served, CONCEPTUAL_SOUNDNESS) if _GROUND_TRUTH.intersection(inputs) else served
