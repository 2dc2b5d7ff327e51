"""Forms of secrets that show themselves: beginnings that only a credential has, and words with a value after them.

A form is a pattern of bounded length. A word such as "password", "PIN" or "Passwort" needs more: the value after it
must not be a word of the sentence ("the password is wrong"), a placeholder or a piece of a program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from lukasa.model.gitleaks import by_rule, entropy
from lukasa.model.secrets import Found, Span


def in_line(line: str) -> Iterator[Found]:
    """Yield the secrets of a line; they may overlap."""
    lower = line.lower()
    for name, needs, form in _FORMS:
        if any(word in lower for word in needs):
            for match in pattern(form).finditer(line):
                group = match.lastindex or 0
                if not _is_placeholder(match[group]):
                    yield Found(match.start(group), match.end(group), name)
    if _LONG.search(line) is not None:
        yield from _tokens(line, lower)
    for name, needs, find in _WORDS:
        if any(word in lower for word in needs):
            for start, end in find(line):
                yield Found(start, end, name)
    if _DIGIT_RUN.search(line) is not None:
        for name, find in _NUMBERS:
            for start, end in find(line):
                yield Found(start, end, name)


@cache
def pattern(source: str) -> re.Pattern[str]:
    """Return a compiled pattern. It is compiled when a line first needs it, since most lines need few."""
    return re.compile(source)


def _tokens(line: str, lower: str) -> Iterator[Found]:
    """Yield the long tokens that are secrets."""
    for found in by_rule(line, lower):
        if not _is_placeholder(line[found.start : found.end]):
            yield found
    for match in pattern(_PREFIXED).finditer(line):
        if _is_tail(match[1]):
            yield Found(match.start(), match.end(), "prefix")
    for match in pattern(_TOKEN).finditer(line):
        if _is_random(match[0]) and not _is_reference(line, match.start()):
            yield Found(match.start(), match.end(), "random")


_DIGIT_RUN = re.compile(r"\d{4}[ -]\d{4}|\d{13}")
_LONG = re.compile(r"[\w.+/=:~@%&$-]{16}")

# Beginnings that only a credential has, our own first.
_PREFIXES = (
    r"lks_|sk-(?:ant-|proj-|or-|svcacct-|lf-)?|[spr]k_(?:live|test|prod)_|gh[opsur]_|github_pat_|"
    r"gl(?:pat|dt|rt|cbt|ptt|soat|ft|agent|oas|imt|ffct)-|GR1348941|xox[abceoprs](?:\.xox[bp])?-|xapp-|xwfp-|hf_|"
    r"api_org_|npm_|pypi-|do[opr]_v1_|SG\.|AIza|ya29\.|1//0|GOCSPX-|EAA[A-Z]|shp(?:at|ss|ca|pa)_|sq0(?:atp|csp|idp)-|sq[upa]_|"
    r"hv[sbr]\.|dckr_(?:pat|oat)_|dapi|lin_(?:api|oauth)_|figd_|ntn_|secret_|rdme_|PMAK-|pul-|nfp_|vc[pkira]_|sb[pa]_|"
    r"sb_(?:secret|publishable)_|whsec_|gsk_|xai-|r8_|pplx-|csk-|tvly-|jina_|pcsk_|lsv2_(?:pt|sk)_|AGE-SECRET-KEY-|"
    r"gl(?:c|sa)_|NR(?:AK|II|JS|RA|SP)-|sntry[su]_|ph[cx]_|rubygems_|CCIPAT_|ATATT3|ATCTT3|ATBB|LTAI|ops_eyJ|"
    r"dp\.(?:pt|st|ct|sa|scim|audit)\.|FlyV1 |fo1_|pscale_(?:tkn|pw|oauth)_|dt0[a-z]\d\d\.|EZ[AT]K|"
    r"duffel_(?:test|live)_|FLWSECK|fio-u-|bkua_|key-(?=[0-9a-f]{32})|SK(?=[0-9a-f]{32})|waka_|CFPAT-|cfut_|AKCp|"
    r"cmVmd|xkeysib-|xsmtpsib-|tskey-|sk\.eyJ|re_(?=\w{8}_)|sl\.(?:u\.)?(?=[\w-]{40})|pat(?=\w{14}\.)|zpka_|eyJrIjoi|"
    r"shippo_(?:live|test)_|access-(?:sandbox|production|development)-|oy2(?=[a-z0-9]{40})|v1\.0-(?=[0-9a-f]{20})"
)
# Each form with words of which the line must hold one, in lower case, and its pattern. The pattern's last group is the
# secret; without a group, the whole match.
_FORMS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("aws-key-id", ("a3t", "akia", "asia", "abia", "acca"),
     r"(?<![A-Za-z0-9])(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,20}(?![A-Za-z0-9])"),
    ("jwt", ("eyj",), r"(?<![\w-])eyJ[\w-]{8,4000}\.[\w-]{8,4000}(?:\.[\w-]{0,4000}){1,3}"),
    ("telegram", (":",), r"(?<![\w:])\d{8,10}:[A-Za-z][\w-]{30,40}(?![\w-])"),
    ("discord", (".",), r"(?<![\w.-])[A-Za-z][\w-]{22,27}\.[\w-]{6,7}\.[\w-]{27,45}(?![\w-])"),
    ("twilio", ("ac",), r"(?<![A-Za-z0-9])AC[0-9a-f]{32}[^\w\n]{1,10}([0-9a-f]{32})(?![0-9A-Za-z])"),
    ("mailchimp", ("-us",), r"(?<![0-9A-Za-z])[0-9a-f]{32}-us\d{1,2}(?!\d)"),
    ("asana", ("1/",), r"(?<![\w/])1/\d{12,20}:[0-9a-f]{32}(?![0-9a-f])"),
    ("azure-client", ("q~",), r"(?<![\w~.-])[\w~.]{3}\dQ~[\w~.-]{28,40}"),
    ("azure-key", ("key=", "value=", "sig="),
     r"(?i)\b(?:AccountKey|SharedAccessKey|SharedSecretValue|sig)=([\w+/%-]{20,200}={0,2})"),
    ("header", ("bearer", "basic", "token", "apikey"),
     (r"\b(?i:bearer|basic|token|apikey)[ \t]{1,3}(?=[\w.~+/=-]{0,60}(?:\d|[a-z][A-Z]))"
                r"([\w.~+/-]{12,4000}={0,2})")),
    ("header", ("x-",),
     r"(?i)\bx-(?:[a-z]{1,20}-){0,3}(?:key|token|secret|auth)[ \t]{0,3}:[ \t]{0,3}([^\s'\",]{8,400})"),
    ("cookie", ("cookie:",), r"(?i)\b(?:set-)?cookie:[ \t]{0,3}([^\n'\"]{16,2000})"),
    ("url", ("://",), r"\b[a-zA-Z][\w+.-]{1,20}://[^\s:/@]{0,80}:([^\s/]{3,200})(?=@[\w\[.-])"),
    ("url", ("://",), r"\bhttps?://([A-Za-z0-9_-]{20,100})(?=(?::[0-9a-f]{1,80})?@[\w.-])"),
    ("query", ("?", "&", ";"),
     (r"(?i)[?&;](?:[a-z]{1,20}[_-]){0,3}(?:(?:token|apikey|secret|password|passwd|pwd|api[_-]?key)="
                r"([^\s&#'\"<>;]{6,1000})|(?:key|sig|signature|auth|code|credential|jwt|session|sessionid)="
                r"([^\s&#'\"<>;]{16,1000}))")),
    ("otp", ("otpauth",), r"(?i)\botpauth://[^\s]{0,200}?secret=([A-Z2-7]{8,200})"),
    ("webhook", ("hooks.slack",),
     r"(?i)\bhooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/([\w/-]{16,200})"),
    ("webhook", ("/webhooks/",),
     r"(?i)\b(?:discord|discordapp)\.com/api/(?:v\d{1,2}/)?webhooks/\d{15,22}/([\w-]{30,120})"),
    ("webhook", ("/webhookb2/",), r"(?i)\.webhook\.office\.com/webhookb2/([\w@/-]{40,300})"),
    ("webhook", ("telegram.org/bot",), r"(?i)\bapi\.telegram\.org/bot([\w:-]{30,80})"),
    ("hash", ("$",), r"\$(?:2[abxy]|5|6|y|argon2(?:id|i|d)|apr1|1)\$[\w./+=,$-]{20,200}"),
    ("command", ("curl",),
     r"\bcurl\b[^\n]{0,400}?\s(?:-u|--user)[ =]?['\"]?[^\s:'\"]{1,80}:([^\s'\"]{3,200})"),
    ("command", ("mysql", "mariadb"),
     r"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n]{0,200}?\s-p['\"]?([^\s'\"]{4,200})"),
    ("command", (" -p",),
     r"\b(?:sshpass|mongo|mongosh|twine|docker login)\b[^\n]{0,200}?\s-p[ =]?['\"]?([^\s'\"]{4,200})"),
    ("command", ("redis-cli",), r"\bredis-cli\b[^\n]{0,200}?\s-a[ =]?['\"]?([^\s'\"]{4,200})"),
    ("command", ("--",),
     r"(?:^|\s)--(?:password|passwd|pass|token|api-key|secret)[ =]['\"]?([^\s'\"$<{-][^\s'\"]{3,400})"),
    ("login", ("machine",), r"(?i)\bmachine\s\S{1,200}\slogin\s\S{1,200}\spassword\s(\S{3,200})"),
    ("login", (":",), r"(?:^|\s)[\w.*-]{1,200}:(?:\d{1,5}|\*):[\w*-]{1,80}:[\w-]{1,80}:(\S{4,200})$"),
    ("login", ("@",),
     (r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}:"
                r"((?=\S{0,60}\d)[^\s/.:]{6,100})(?!\S)")),
    ("wifi", ("wifi:",), r"\bWIFI:[^\n]{0,200}?;?P:([^;\n]{4,100})"),
    ("putty", ("private-mac",), r"\bPrivate-MAC:\s{1,3}([0-9a-f]{20,80})"),
)  # fmt: skip
_PREFIXED = rf"(?<![A-Za-z0-9])(?:{_PREFIXES})([\w.+/=-]{{11,400}}[\w+/=-])"
PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[^-]{0,16000}-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|"
    r"(?:\s{0,4}[\w+/=:,. -]{1,200}(?:\n|$|\\n)){0,200})"
)


def _is_tail(tail: str) -> bool:
    """Whether the rest of a token is no name: a long part of it has digits, both cases, or hardly any variety."""
    parts = [part for part in re.findall(r"[A-Za-z0-9]+", tail) if len(part) >= 10]
    return any(
        any(c.isdigit() for c in part) or not (part.islower() or part.istitle()) or len(set(part)) <= 3
        for part in parts
    )


# A word on its own that only chance makes.
_TOKEN = r"(?<![\w+/=.-])[A-Za-z0-9+_-][A-Za-z0-9+/_-]{31,199}={0,2}(?![\w+/=])"
_PUBLIC = ("sha1-", "sha256-", "sha384-", "sha512-", "AAAAB3Nza", "AAAAC3Nza", "AAAAE2Vj", "AAAAGnNr")
_DIGESTS = ("SHA256:", "sha256:", "sha512:", "sha256-", "sha512-", "MD5:")


def _is_random(token: str) -> bool:
    """Whether a token looks made by chance: both cases and digits, mixed; hexadecimal digests and names are not."""
    body = token.rstrip("=")
    digits = len(re.findall(r"\d+", body))
    turns = len(re.findall(r"[a-z][A-Z0-9]|[A-Z][0-9]|[0-9][A-Za-z]", body))
    mixed = any(c.islower() for c in body) and any(c.isupper() for c in body)
    return mixed and digits >= 3 and turns * 5 >= len(body) and body.count("/") < 5 and entropy(body) >= 4.0


def _is_reference(line: str, at: int) -> bool:
    """Whether a token is part of an address, a digest with its name, or a public key."""
    begin = max(line.rfind(" ", 0, at), line.rfind("\t", 0, at)) + 1
    return (
        "://" in line[begin:at]
        or "www." in line[begin:at]
        or line.startswith(_PUBLIC, at)
        or line.endswith(_DIGESTS, 0, at)
    )


# A word and a value after it.
_IS = (
    r"(?:\s{0,3}(?::=|=>|->|→|[:=：＝|–—])[*_]{0,2}|\s{1,3}(?:is|was|are|ist|war|lautet|heißt|heisst|est|es|é|è|jest|"
    r"now|is now|ist jetzt)(?=[\s:=])\s{0,2}[:=]?|['’]s(?=\s)|(?<=[^\x00-\x7f])[是は])\s{0,3}"
)
_QUOTE = r"[\"'`“”„«»‘’]"
_VALUE = rf"(?:{_QUOTE}([^\"'`“”„«»‘’\n]{{3,200}}){_QUOTE}|(\S{{3,400}}))"
_PASSWORD_WORD = (
    r"(?:pass(?:wor[dt]s?|wörter|wd|code|phrase)|kennwort|losungswort|zugangscode|pwd|requirepass|"
    r"(?<![A-Za-z])(?:pw|pass|psk|puk)(?![A-Za-z])|mot de passe|contraseña|contrasena|\bclave\b|\bsenha\b|wachtwoord|"
    r"hasło|haslo|пароль|密码|密碼|口令|パスワード|비밀번호|netzwerkschlüssel|sicherheitsschlüssel|"
    r"(?:wlan|wi-?fi|network|netzwerk)[ -]?(?:key|schlüssel))[\"'`\])*_]{0,4}"
)
_FOR = (
    r"(?:for|to|of|on|in|at|zum|zur|für|fürs|vom|von|des|der|im|beim|bei|meiner|meines|unserer|unseres|auf|"
    r"aus|with|from|pour|para|de|del|du|do|da|chez)"
)
_PASSWORD = rf"(?i){_PASSWORD_WORD}(?:\s{_FOR}\s[^\n:=.]{{1,60}}?)?(?P<is>{_IS}|\s(?:to|auf|zu|als|as)\s){_VALUE}"
_BARE_PASSWORD = rf"(?i){_PASSWORD_WORD}\s{_VALUE}"
_KEYWORD = (
    r"(?i)(?:(?:(?P<strong>secret|token|api[ _-]?key|(?:access|account|private|encryption|signing|master|license|"
    r"service|app|deploy|auth|client|subscription|webhook|shared|admin|product|lizenz|application|integration|storage)"
    r"[ _-]?(?:key|secret|schlüssel)|credentials?|creds)|schl(?:ü|ue)ssel|geheimnis|session[ _-]?id|\bkey|\bauth|_key|"
    r"_auth|clé)[ _-]?){1,3}"
    rf"(?:(?<=[_-])[A-Za-z0-9_-]{{1,30}})?[\"'`\])*_]{{0,4}}(?:\s(?:for|to|of|für|vom|von|on|in)\s[^\n:=.]{{1,40}}?)?"
    rf"(?P<is>{_IS}|\sto\s|\s{{1,3}}){_VALUE}"
)
_DIGITS = (
    r"(?i)(?:\bPINs?(?:[ -]?(?:code|number|nummer))?|geheimzahl|\bPUK|\bCV[VC]2?\b|\bOTP\b|combination|kombination|"
    r"(?:door|gate|entry|entrance|alarm|safe|lock|unlock|access|security|verification|confirmation|backup|recovery|reset|"
    r"login|2fa|mfa|two-factor|one-time|sms|garage|keypad|lockbox|key box|building|locker|garagen|tür|tor|haus|"
    r"sicherheits|bestätigungs|zugangs|einmal)[ -]?(?:code|combination|codes|pin|number)|passcode|\btan\b|"
    r"code (?:for|to|of|on|für|zum|zur|vom|am) (?:the |our |my |das |den |die |dem |der )?(?:front |back |main )?"
    r"(?:door|gate|building|garage|alarm|safe|lock|locker|house|office|elevator|lockbox|keypad|tür|tor|haus|tresor|garage|büro))"
    rf"(?:\s(?:for|to|of|on|für|vom|von|zum|zur|am|an|bei|meiner|meines|unserer|des|der)\s[^\n:=.\d]{{1,40}}?)?(?:{_IS}|\s(?:to|auf)\s|\s{{1,2}}(?=\d{{4}}))"
    r"[\"'`“„]?([#*]?\d(?:[ -]?\d){2,11}[#*]?(?:(?:, ?| and | und )\d{4}(?:[ -]?\d){0,8}){0,9})"
    r"(?![\d.,:/]?\d|\s?(?:%|px|ms|pins?\b))"
)
_NUMBER_WORDS = (
    "zero|oh|one|two|three|four|five|six|seven|eight|nine|double|triple|null|eins|zwei|zwo|drei|vier|fünf|sechs|"
    "sieben|acht|neun|doppel"
)
_SPELLED = (
    r"(?i)(?:\bPIN\b|\bcode\b|code\b|geheimzahl|passcode|combination|kombination)[^\n:=.\d]{0,40}?"
    rf"(?:{_IS}|\s)((?:{_NUMBER_WORDS})(?:[ ,-]{{1,2}}(?:{_NUMBER_WORDS})){{3,11}})\b"
)
_PHRASE = (
    r"(?i)(?:(?:seed|recovery|backup|mnemonic|secret|wallet)[ -](?:phrase|words|seed)|mnemonic|passphrase|passsatz)"
    rf"(?:\s(?:for|to|of|für)\s[^\n:=.]{{1,40}}?)?{_IS}{_QUOTE}?"
    r"((?:[a-zäöüß]{3,12}[ ,-]{1,2}){3,23}[a-zäöüß]{3,12})"
)
_WLAN = (
    r"(?i)\b(?:wi-?fi|wlan|wpa2?|hotspot|router|netzwerk)\b(?:\s[^\n:=]{1,40}?)?\s{0,2}[:=/]\s{0,3}"
    rf"(?:[^\n/,|]{{2,40}}[/,|]\s{{0,2}})?{_VALUE}"
)
_LOGIN = (
    r"(?i)\b(?:login|log in|sign in|credentials?|creds|account|zugang|zugangsdaten|anmeldung)\b[^\n]{0,40}?[\s:=]"
    r"([\w.@+-]{2,60})\s{0,2}(?:/|:|\bwith\b|\bmit\b)\s{0,2}(\S{5,100})"
)
_REVERSED = (
    r"(?i)(?<!\S)[\"'`“]?([^\s\"'`“”]{4,100})[\"'`”]?\s(?:is|was|as|ist|als|est)\s(?:the|my|our|das|mein|unser|die|meine|a|an|le)\s"
    r"(?:[\w'’-]{1,20}\s){0,2}?(?:password|passwort|kennwort|passcode|pin\b|api key|token\b|passphrase|mot de passe)"
)
_CARD = r"(?<![\w.-])(?:\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{1,7}|3[47]\d{2}[ -]?\d{6}[ -]?\d{5})(?![\w-]|\.\d)"
_IBAN = r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"
_CARD_CODE = r"(?i)\bCV[VC]2?\b[^\w\n]{0,4}(?:(?:is|ist|code)[^\w\n]{1,4})?(\d{3,4})(?!\d)"
_ENTRY_CODE = (
    r"(?i)(?:alarm|door|gate|safe|vault|lock|disarm|tür|tresor|garage)[^\n]{0,60}?\bcode\b"
    r"(?:\s(?:is|ist))?[\s:=]{1,3}(\d{4,8}[#*]?)(?!\d)"
)
_TO_LOG_IN = r"(?i)(?<!\S)[\w.@+-]{2,60}\s{0,2}[/:]\s{0,2}(\S{5,100})\s(?:to|zum)\s(?:log|sign|einloggen|anmelden)"
_SSN = r"(?i)\b(?:ssn|social security(?: number)?)\b[^\n\d]{0,20}(\d{3}-?\d{2}-?\d{4})\b"
# Words that follow "the password is" or "token:" and are no password.
_PLAIN = frozenset(
    """a an the in on at to too very so not no never always now still only just also that this what where when which who
    wrong right correct incorrect invalid valid expired required optional missing empty blank short long weak strong
    safe secure insecure broken unknown known visible hidden hashed salted encrypted stored saved kept set reset changed
    unchanged different same written sent shared printed shown needed used unused accepted rejected denied refused
    default secret private public important fine good bad okay ok fun hard easy simple complex case-sensitive sensitive
    string str int bool none null true false undefined nil optional any object number text varchar char bytes
    being by for from of with without under over above below between about after before your my our his her their its
    yes no maybe soon there here gone lost forgotten out up down off again back like more less than as if or and but
    required. policy manager field flow prompt form page input placeholder hint label reset
    nicht kein keine falsch richtig abgelaufen zu im in der die das ein eine sehr noch immer nie leer kurz lang schwach
    stark sicher unsicher gespeichert geändert bekannt unbekannt nötig erforderlich vergessen weg gut schlecht
    le la les un une dans sur trop pas el los en muy demasiado al por con est es ist""".split()
)
_PARTICIPLE = re.compile(r"(?i)[a-zäöüß'-]{2,}(?:ed|able|ible|ing|ly|ive|ous|ful|less|ent|ant|tion|ert|lich|bar)")
_PLACEHOLDER = re.compile(
    r"(?i)[\[<{(%$].*|\*{2,}.*|•{2,}.*|x{3,}|\.{2,}|…|_{2,}|(?:your|my|the|some|an?|dein|mein|ihr)[-_].*|changeme|redacted|"
    r"placeholder|example|todo|tbd|n/?a|null|none|nil|true|false|undefined|\[?secret\]?|os\.(?:environ|getenv).*|"
    r"process\.env.*|env[.:\[].*|settings\.\w+|config\.\w+|self\.\w+|vault:.*|op://.*|keyring.*|secrets?\.\w+.*|https?://.*"
)


def _is_placeholder(value: str) -> bool:
    return _PLACEHOLDER.fullmatch(value) is not None


def _cut(value: str) -> str:
    """A value without the punctuation of the sentence around it."""
    return value.rstrip(".,;:?)]}>\"'`“”»’…|\\") if len(value) > 3 else value


def _is_code(value: str) -> bool:
    """Whether a value is an expression or a type of a program, or a path."""
    return "(" in value or value.startswith(("/", "./", "~/", "../")) or "::" in value or value.endswith("[]")


def is_value(value: str) -> bool:
    """Whether a text can be a password: it has a digit, a sign or a capital inside, and is no placeholder."""
    if len(value) < 3 or _is_placeholder(value) or _is_code(value):
        return False
    return _is_odd(value) or (value.isalpha() and len(value) >= 5 and not _is_plain(value))


def _is_odd(value: str) -> bool:
    """Whether a text has a form that words do not have."""
    if re.fullmatch(
        r"(?:\d{1,3}|v?\d{1,3}(?:\.\d{1,4}){1,3}|\d{1,4}(?:st|nd|rd|th|s|x|h|d|ms|kb|mb|gb|%|€|\$)|[a-z]+(?:-[a-z]+)+)",
        value,
        re.I,
    ):
        return False
    return any(c.isdigit() for c in value) or re.search(r"[!@#$%^&*?+=~_]|[a-z][A-Z]", value) is not None


def _is_plain(value: str) -> bool:
    word = value.lower().strip("-_'.")
    return word in _PLAIN or _PARTICIPLE.fullmatch(word) is not None


def _passwords(line: str) -> Iterator[Span]:
    for match in pattern(_PASSWORD).finditer(line):
        quoted, value = match[2] is not None, match[2] or _cut(match[3])
        if _is_placeholder(value) or (_is_code(value) and not quoted):
            continue
        if _is_odd(value) or (quoted and not _is_plain(value)) or _is_last_word(line, match, value):
            start = match.start(2 if quoted else 3)
            yield start, start + len(value)
    # Nothing says "is" here, so the value itself must look like a password.
    for match in pattern(_BARE_PASSWORD).finditer(line):
        if match[0][:5].lower() == "pass " and not _NAMES_USER.search(line, 0, match.start()):
            continue  # the verb: "pass `count=True`"
        quoted, value = match[1] is not None, match[1] or _cut(match[2])
        odd = _is_strong(value) and any(map(str.isdigit, value)) and _VERSIONED.fullmatch(value) is None
        if odd or (quoted and not _is_plain(value) and not _is_placeholder(value)):
            start = match.start(1 if quoted else 2)
            yield start, start + len(value)


_NAMES_USER = re.compile(r"(?i)user|login|account|benutzer")


def _is_last_word(line: str, match: re.Match[str], value: str) -> bool:
    """Whether a plain word ends the sentence after "password:" or "the … password is", and is no adjective."""
    rest = line[match.end() :].strip(" .,;!)\"'*|")
    if match[3] is None or rest or len(value) < 4 or not value.isalpha() or _is_plain(value):
        return False
    before = line[: match.start()].lower().split()
    sign = match["is"].strip(" *_")
    return sign in (":", "=", "：") or (sign in ("is", "ist") and _OWN.intersection(before[-3:]) != set())


_OWN = frozenset(
    "my our wifi wi-fi wlan admin root guest email e-mail router laptop home office mein meine unser unsere".split()
)


def _keys(line: str) -> Iterator[Span]:
    for match in pattern(_KEYWORD).finditer(line):
        group = 3 if match[3] is not None else 4
        value = match[group] if group == 3 else _cut(match[group])
        letters = sum(c.isalpha() for c in value)
        digits = sum(c.isdigit() for c in value)
        least = 8 if match["strong"] else 16
        if len(value) < least or _is_placeholder(value) or _is_code(value) or not digits or not letters:
            continue
        if "/" in value and re.search(r"\.\w{1,5}$", value):  # a file
            continue
        named = _VERSIONED.fullmatch(value) or (_NUMBERED.fullmatch(value) and (len(value) < 16 or "-" in value))
        if (named and "=" not in match["is"]) or _UNSECRET.search(
            line[max(0, match.start() - 12) : match.start(group)]
        ):
            continue
        yield match.start(group), match.start(group) + len(value)


# Versions, dates, files, addresses and amounts, which are no secrets; then names with a number.
_VERSIONED = re.compile(
    r"(?i)v?\d[\d.]*(?:-?(?:alpha|beta|rc|dev)[\d.]*)?|\d{4}-\d\d-\d\d.*|"
    r"[\w.-]+\.(?:py|md|ts|js|go|rs|json|toml|yaml|yml|txt|pem|env|html|com|org|net|io|dev)(?::\d+)?|"
    r"[\w.-]{1,60}@[\w.-]{1,60}|\d{1,3}(?:[.,]\d{3})*[a-z]{1,8}"
)
_NUMBERED = re.compile(r"(?i)[a-z]+(?:[-_.][a-z]+)*[-_.]?\d{1,4}")
_UNSECRET = re.compile(
    r"(?i)public|primary key|foreign|keyboard|keynote|issue|ticket|commit|hash|cache|partition|monkey"
)


def _groups(source: str, fits: Callable[[str], bool] = bool) -> Callable[[str], Iterator[Span]]:
    """A function that yields the place of a pattern's last group wherever its text fits."""

    def find(line: str) -> Iterator[Span]:
        for match in pattern(source).finditer(line):
            group = match.lastindex or 0
            value = match[group]
            if fits(value):
                yield match.start(group), match.start(group) + len(value)

    return find


def _is_strong(value: str) -> bool:
    value = _cut(value)
    return len(value) >= 6 and _is_odd(value) and not _is_placeholder(value) and not _is_code(value)


def _is_wifi(value: str) -> bool:
    return len(value) >= 8 and any(c.isdigit() for c in value) and _is_strong(value)


def _is_reversed(value: str) -> bool:
    """Whether a text before "is the password" is one: a word with digits, or four digits and more."""
    return re.fullmatch(r"\d{4,8}", value) is not None or (any(map(str.isalpha, value)) and _is_strong(value))


def _is_phrase(value: str) -> bool:
    words = re.split(r"[ ,-]+", value)
    return not any(word in _PLAIN for word in words[:2])


def _is_card(value: str) -> bool:
    """Whether digits have a card's length, first digit and check digit (Luhn)."""
    digits = [int(c) for c in value if c.isdigit()]
    if not 13 <= len(digits) <= 19 or digits[0] not in (2, 3, 4, 5, 6) or len(set(digits)) < 2:
        return False
    doubled = [d if n % 2 == 0 else sum(divmod(2 * d, 10)) for n, d in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0


def _is_iban(value: str) -> bool:
    """Whether the check digits of an account number are right (ISO 7064, modulo 97)."""
    plain = value.replace(" ", "")
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


# Each search with words of which the line must hold one, in lower case.
_PASSWORDS = tuple(
    "pass wort pwd pw psk puk code contrase clave senha wachtwoord hasło haslo парол 密码 密碼 口令 "
    "パスワード 비밀번호 schlüssel wlan wifi wi-fi network netzwerk".split()
)
_CODES = ("pin", "code", "zahl", "puk", "cv", "otp", "combination", "kombination", "tan", "number")
_WORDS: tuple[tuple[str, tuple[str, ...], Callable[[str], Iterator[Span]]], ...] = (
    ("password", _PASSWORDS, _passwords),
    ("password", (*_PASSWORDS, "pin", "api key", "token"), _groups(_REVERSED, _is_reversed)),
    ("key", ("key", "secret", "token", "cred", "auth", "schl", "geheim", "session", "clé"), _keys),
    ("digits", _CODES, _groups(_DIGITS)),
    ("digits", _CODES, _groups(_SPELLED)),
    ("digits", ("cvv", "cvc"), _groups(_CARD_CODE)),
    ("digits", ("code",), _groups(_ENTRY_CODE)),
    ("phrase", ("phrase", "words", "seed", "mnemonic", "passsatz"), _groups(_PHRASE, _is_phrase)),
    ("wifi", ("wifi", "wi-fi", "wlan", "wpa", "hotspot", "router", "netzwerk"), _groups(_WLAN, _is_wifi)),
    ("login", ("log", "sign in", "cred", "account", "zugang", "anmeld"), _groups(_LOGIN, _is_strong)),
    ("login", ("to log", "to sign", "zum einl", "zum anm"), _groups(_TO_LOG_IN, _is_strong)),
    ("ssn", ("ssn", "social security"), _groups(_SSN)),
)
_NUMBERS: tuple[tuple[str, Callable[[str], Iterator[Span]]], ...] = (
    ("card", _groups(_CARD, _is_card)),
    ("account", _groups(_IBAN, _is_iban)),
)
