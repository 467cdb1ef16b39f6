"""Telephone numbering plans of the world (phonenumbers)."""

from collections.abc import Sequence

from ragtide.evaluators.leaks.patterns import compile_pattern

CANDIDATES = 2_000  # number-like places looked at in one text: some 0.2 s
# Countries whose numbers are written with a leading 0 at home.
_TRUNK_REGIONS = ("GB", "DE", "FR", "AU", "JP", "KR", "IT", "NL", "CH", "BE", "SE", "IN", "AT", "IE", "ZA", "NZ")
_LONG = 10  # digits, with which the leading 0 is left out, too
_DATE = (
    r"^(?:[0-9](?:\.[0-9]{1,4}){2,4}$|"  # a version
    r"(?:19|20)[0-9]{2} ?[-/] ?(?:19|20)[0-9]{2}$|"  # from a year to a year
    r"(?:1[0-9]|2[01])[0-9]{2}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{4})"
)


class TooMany(Exception):
    """The text has more candidates than the limit."""


class NumberingPlans:
    """The numbering plans, with a limit on look-ups."""

    def __init__(self) -> None:
        self._left = CANDIDATES

    def spend(self, times: int) -> None:
        """Raises `TooMany` if the limit is exceeded."""
        self._left -= times
        if self._left < 0:
            raise TooMany

    def possible(self, text: str) -> bool:
        """Whether an international number has a country code and a valid length."""
        from phonenumbers import NumberParseException, is_possible_number, parse

        self.spend(1)
        try:
            return is_possible_number(parse(text))
        except NumberParseException:
            return False

    def valid_at_home(self, text: str) -> bool:
        """Whether it is valid in some country that writes a leading 0."""
        return self.valid_in(text, _TRUNK_REGIONS)

    def valid_in(self, text: str, regions: Sequence[str]) -> bool:
        """Whether it is valid in one of these countries, as written there."""
        from phonenumbers import NumberParseException, is_valid_number_for_region, parse

        for region in regions:
            self.spend(1)
            try:
                if is_valid_number_for_region(parse(text, region), region):
                    return True
            except NumberParseException:
                continue
        return False

    def written_in(self, text: str, regions: Sequence[str]) -> bool:
        """Whether it is valid in one of these countries, with the leading digits that people there write."""
        from phonenumbers import (
            NumberParseException,
            PhoneNumberFormat,
            format_number,
            is_valid_number_for_region,
            parse,
        )

        digits = "".join(filter(str.isdigit, text))
        for region in regions:
            self.spend(1)
            try:
                number = parse(text, region)
            except NumberParseException:
                continue
            if is_valid_number_for_region(number, region):
                national = "".join(filter(str.isdigit, format_number(number, PhoneNumberFormat.NATIONAL)))
                if digits == national or (len(digits) >= _LONG and national.endswith(digits)):
                    return True
        return False


def reads_as_date(number: bytes) -> bool:
    """Whether it has the form of a date, of years or of a version."""
    return compile_pattern(_DATE).search(number) is not None
