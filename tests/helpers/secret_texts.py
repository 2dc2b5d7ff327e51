"""Texts with a secret and texts that only look alike. All credentials are invented, and put together here in parts."""

from __future__ import annotations

import random
import string

_ALPHABET = string.ascii_letters + string.digits
_CHANCE = random.Random(23)


def _some(length: int, alphabet: str = _ALPHABET) -> str:
    """A text by chance, the same in every run, with a digit and both cases if the alphabet has them."""
    while True:
        made = "".join(_CHANCE.choice(alphabet) for _ in range(length))
        wanted = (str.isdigit, str.islower, str.isupper)
        if length < 8 or all(any(map(sort, made)) for sort in wanted if any(map(sort, alphabet))):
            return made


_DIGITS = string.digits
_HEX = "0123456789abcdef"
_UPPER = string.ascii_uppercase + string.digits
_URL = _ALPHABET + "-_"


def _uuid() -> str:
    return "-".join(_some(n, _HEX) for n in (8, 4, 4, 4, 12))


def _luhn(start: str) -> str:
    """A number with the check digit of a card."""
    doubled = [int(c) if n % 2 else sum(divmod(2 * int(c), 10)) for n, c in enumerate(reversed(start))]
    return start + str(-sum(doubled) % 10)


def _card() -> str:
    number = _luhn("4" + _some(14, _DIGITS))
    return " ".join(number[n : n + 4] for n in range(0, 16, 4))


def _iban() -> str:
    account = _some(18, _DIGITS)
    check = 98 - int(account + "131400") % 97
    return f"DE{check:02d}{account}"


def _made() -> list[tuple[str, str, str]]:
    """Each secret: the name of its format, the secret, and a sentence with {} in its place."""
    key = "PRIVATE" + " KEY"
    body = "\n".join(_some(64) for _ in range(6))
    rsa = f"-----BEGIN RSA {key}-----\n{body}\n-----END RSA {key}-----"
    openssh = f"-----BEGIN OPENSSH {key}-----\n{body}\n-----END OPENSSH {key}-----"
    cut = f"-----BEGIN {key}-----\n{body}"
    jwt = f"ey{'J'}{_some(30)}.ey{'J'}{_some(60)}.{_some(43, _URL)}"
    return [
        # services
        ("lukasa", "lks" + f"_{_uuid()}_{_some(43, _URL)}", "the agent's token is {}"),
        ("aws id", "AK" + "IA" + _some(16, _UPPER), "Deploys use {} now."),
        ("aws temporary id", "AS" + "IA" + _some(16, _UPPER), "export AWS_ACCESS_KEY_ID={}"),
        ("aws secret", _some(40, _ALPHABET + "/+"), "aws_secret_access_key = {}"),
        ("aws secret, prose", _some(40), "and the AWS secret key is {}, keep it safe"),
        ("google api", "AI" + "za" + _some(35, _URL), "The Maps key: {}"),
        ("google oauth", "GOC" + "SPX-" + _some(28, _URL), "client secret {}"),
        ("google access", "ya" + "29." + _some(80, _URL), "curl with {} works"),
        ("azure storage", _some(86, _ALPHABET + "+/") + "==", "DefaultEndpointsProtocol=https;AccountKey={}"),
        ("azure client", _some(3) + "8Q" + "~" + _some(34), "The app registration got {} today"),
        ("azure sas", _some(43) + "%3D", "https://acme.blob.core.windows.net/c/b.txt?sv=2022-11-02&sig={}"),
        ("azure devops", _some(52, string.ascii_lowercase + _DIGITS), "AZURE_DEVOPS_TOKEN={}"),
        ("digitalocean", "dop" + "_v1_" + _some(64, _HEX), "doctl auth init -t {}"),
        ("heroku", _uuid(), "HEROKU_API_KEY={}"),
        ("cloudflare", _some(40, _URL), "cloudflare api token: {}"),
        ("linode", _some(64, _HEX), "Linode access token is {}"),
        ("alibaba", "LT" + "AI" + _some(20), "use {} for the bucket"),
        ("vault", "hv" + "s." + _some(24), "VAULT_TOKEN={}"),
        ("terraform", _some(14) + ".atlas" + "v1." + _some(64), "credentials app.terraform.io {}"),
        ("databricks", "da" + "pi" + _some(32, _HEX), "databricks uses {}"),
        ("github", "gh" + "p_" + _some(36), "my github token is {}."),
        ("github app", "gh" + "s_" + _some(36), "({})"),
        ("github fine-grained", "github" + "_pat_" + _some(22) + "_" + _some(59), "push with {}"),
        ("gitlab", "gl" + "pat-" + _some(20), "GitLab gave me {}, valid a year"),
        ("bitbucket", "AT" + "BB" + _some(32), "The app password is {}"),
        ("atlassian", "ATA" + "TT3" + _some(180, _URL), "jira: {}"),
        ("slack bot", "xo" + "xb-" + "-".join((_some(12, _DIGITS), _some(12, _DIGITS), _some(24))), "Bot: {}"),
        ("slack app", "xa" + "pp-1-A" + "-".join((_some(9, _UPPER), _some(13, _DIGITS), _some(64, _HEX))), "{}"),
        ("slack webhook", "/".join(("T" + _some(8, _UPPER), "B" + _some(8, _UPPER), _some(24))),
         "post to https://hooks.slack.com/services/{}"),
        ("discord bot", "MT" + _some(24) + "." + _some(6) + "." + _some(38, _URL), "DISCORD={}"),
        ("discord webhook", _some(68, _URL), "https://discord.com/api/webhooks/" + _some(18, _DIGITS) + "/{}"),
        ("telegram", _some(10, "123456789") + ":AA" + _some(33, _URL), "the bot runs on {}"),
        ("stripe", "sk" + "_live_" + _some(24), "STRIPE={}"),
        ("stripe restricted", "rk" + "_live_" + _some(32), "'{}'"),
        ("stripe webhook", "wh" + "sec_" + _some(32), "signing {}"),
        ("square", "sq0" + "atp-" + _some(22, _URL), "Square: {}"),
        ("paypal", _some(80, _URL), "PAYPAL_CLIENT_SECRET={}"),
        ("shopify", "shp" + "at_" + _some(32, _HEX), "store token {}"),
        ("twilio key", "S" + "K" + _some(32, _HEX), "sms goes out with {}"),
        ("twilio auth", _some(32, _HEX), "Twilio auth token: {}"),
        ("sendgrid", "S" + "G." + _some(22, _URL) + "." + _some(43, _URL), "mail by {}"),
        ("mailgun", "ke" + "y-" + _some(32, _HEX), "mailgun {}"),
        ("mailchimp", _some(32, _HEX) + "-us14", "mailchimp api key is {}"),
        ("npm", "np" + "m_" + _some(36), "//registry.npmjs.org/:_authToken={}"),
        ("pypi", "py" + "pi-AgEIcHlwaS5vcmc" + _some(70, _URL), "twine upload -u __token__ -p {}"),
        ("rubygems", "ruby" + "gems_" + _some(48, _HEX), "{}"),
        ("docker", "dckr" + "_pat_" + _some(27, _URL), "docker login with {}"),
        ("hugging face", "h" + "f_" + _some(34), "HF: {}"),
        ("openai", "s" + "k-" + _some(48), "I pay for {}"),
        ("openai project", "s" + "k-proj-" + _some(80, _URL), "OPENAI_API_KEY={}"),
        ("anthropic", "s" + "k-ant-api03-" + _some(93, _URL) + "AA", "claude works with {}"),
        ("groq", "gs" + "k_" + _some(52), "{} is for groq"),
        ("replicate", "r" + "8_" + _some(37), "replicate: {}"),
        ("perplexity", "pp" + "lx-" + _some(48), "{}"),
        ("datadog", _some(32, _HEX), "DD_API_KEY={}"),
        ("datadog, prose", _some(40, _HEX), "The Datadog application key is {}"),
        ("new relic", "NR" + "AK-" + _some(27, _UPPER), "set {}"),
        ("grafana", "gl" + "sa_" + _some(32) + "_" + _some(8, _HEX), "dashboards: {}"),
        ("sentry", _some(32, _HEX), "dsn https://{}@o1.ingest.sentry.io/4501"),
        ("pagerduty", "u+" + _some(18), "pagerduty api key: {}"),
        ("linear", "lin" + "_api_" + _some(40), "issues sync by {}"),
        ("notion", "nt" + "n_" + _some(46), "notion: {}"),
        ("airtable", "pa" + "t" + _some(14) + "." + _some(64, _HEX), "airtable {}"),
        ("figma", "fi" + "gd_" + _some(40, _URL), "figma {}"),
        ("postman", "PM" + "AK-" + _some(24, _HEX) + "-" + _some(34, _HEX), "postman {}"),
        ("planetscale", "psc" + "ale_pw_" + _some(43, _URL), "db {}"),
        ("supabase", "sb" + "p_" + _some(40, _HEX), "supabase login --token {}"),
        ("doppler", "dp" + ".pt." + _some(43), "{}"),
        ("tailscale", "tskey" + "-auth-" + _some(17) + "-" + _some(32), "tailscale up --authkey {}"),
        ("facebook", "EA" + "AC" + _some(120), "page: {}"),
        ("dropbox", "s" + "l." + _some(130, _URL), "dropbox {}"),
        ("age", "AGE-SECRET" + "-KEY-1" + _some(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"), "{}"),
        ("1password", "A3" + "-" + "-".join(_some(n, _UPPER) for n in (6, 6, 5, 5, 5, 5)), "Emergency kit: {}"),
        # forms
        ("rsa key", rsa, "here it is:\n{}\nbye"),
        ("ssh key", openssh, "{}"),
        ("key without end", cut, "{}"),
        ("jwt", jwt, "Authorization: Bearer {}"),
        ("jwt alone", jwt.replace("a", "b"), "session {} expired"),
        ("bearer", _some(40), "curl -H 'Authorization: Bearer {}' https://api.acme.dev"),
        ("basic", _some(30) + "==", "Authorization: Basic {}"),
        ("x-api-key", _some(24), "x-api-key: {}"),
        ("postgres url", "Tr0ub4dor", "DATABASE_URL=postgres://app:{}@db.internal:5432/app"),
        ("mongodb url", "p4ss-w0rd", "mongodb+srv://root:{}@cluster0.abc.mongodb.net"),
        ("redis url", "s3cr3tredis", "redis://:{}@cache:6379/0"),
        ("basic auth url", "letmein", "see https://admin:{}@wiki.acme.dev/page"),
        ("git url", _some(40), "git clone https://{}@github.com/acme/app.git"),
        ("ado string", "Str0ng!Pw", "Server=db;Database=app;User Id=sa;Password={};Encrypt=true"),
        ("jdbc", "oracle11", "jdbc:mysql://db/app?user=app&password={}"),
        ("query token", _some(24), "https://acme.dev/feed.rss?token={}"),
        ("curl user", "hunter22", "curl -u admin:{} https://acme.dev/api"),
        ("mysql", "tiger42", "mysql -u root -p{} shop"),
        ("netrc", "n3trcpw", "machine api.acme.dev login kim password {}"),
        ("env password", "q8#mVz!2", "DB_PASSWORD={}"),
        ("env quoted", "correct horse", 'SMTP_PASSWORD="{}"'),
        ("yaml", "Wint3r-Is", "  password: {}"),
        ("json", "Zx81-Spectrum", '{{"user": "kim", "password": "{}"}}'),
        ("toml secret", _some(32), 'client_secret = "{}"'),
        ("secret key", _some(50, _ALPHABET + "!@#%^&*"), "SECRET_KEY = '{}'"),
        ("bcrypt", "$2" + "b$12$" + _some(53), "hash {}"),
        ("otpauth", _some(32, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"), "otpauth://totp/Acme:kim?secret={}&issuer=Acme"),
        ("wifi code", "gartenzaun9", "WIFI:T:WPA;S:Home;P:{};;"),
        ("alone", _some(44), "for the backup box: {}"),
        # sentences
        ("password is", "hunter2", "My password is {}"),
        ("password for", "Bluebird!77", "The password for the staging server is {}."),
        ("password word", "swordfish", "our wifi password is {}"),
        ("password colon", "swordfish", "Password: {}"),
        ("password quoted", "open sesame", "the admin password is '{}'"),
        ("password changed", "Autumn2031", "I changed the password to {} yesterday"),
        ("pw", "kuchen88", "pw: {}"),
        ("german", "Sommer2031!", "Das Passwort ist {}"),
        ("german, for", "Igel-4711", "Das Passwort für den Drucker lautet {}."),
        ("kennwort", "Regenbogen7", "Kennwort: {}"),
        ("french", "Soleil75", "Le mot de passe est {}"),
        ("spanish", "Verano99!", "la contraseña es {}"),
        ("chinese", "Qx9wert1", "密码：{}"),
        ("wifi line", "Gr33nTea-Pot", "wifi: {}"),
        ("wifi pair", "kaffee-2031", "WLAN: FritzBox 7590 / {}"),
        ("pin", "4711", "my PIN is {}"),
        ("pin of card", "8302", "the PIN for the blue card is {}"),
        ("pin, german", "9054", "Die PIN lautet {}"),
        ("pin in words", "four seven one one", "The pin is {}"),
        ("door code", "2580#", "the door code is {}"),
        ("alarm code", "66291", "Alarm code: {}"),
        ("cvv", "713", "CVV: {}"),
        ("login", "Pa55-word", "login for the portal: kim / {}"),
        ("card", _card(), "charge it to {} please"),
        ("amex", _luhn("37" + _some(12, _DIGITS)), "Amex {}"),
        ("iban", _iban(), "transfer to {}"),
        ("seed phrase", "pulp river anchor dune velvet comet lunar otter maple grain tiger quilt",
         "my seed phrase is: {}"),
        ("passphrase", "purple monkey dishwasher lantern", "the passphrase is {}"),
        ("ssn", "078-05-1120", "my SSN is {}"),
        ("said backwards", "tulip-2031", "{} is the password of the printer"),
        ("named last", "bamboo77", "use {} as our password"),
        ("no verb", "f00bar99", "requirepass {}"),
        ("table", "s3cretz", "| admin | password | {} |"),
        ("markdown", "Tr1cky", "**Password:** {}"),
        ("mail and password", "Fluffy99", "kim@acme.dev:{}"),
        ("code for", "1984", "the code for the gate is {}"),
        ("russian", "Зима2031", "пароль: {}"),
        ("twilio pair", _some(32, _HEX), "TWILIO: A" + "C" + _some(32, _HEX) + " / {}"),
        ("mailchimp alone", _some(32, _HEX) + "-us6", "{}"),
        ("asana", "1/" + _some(16, _DIGITS) + ":" + _some(32, _HEX), "asana: {}"),
        ("sonar", "sq" + "u_" + _some(40, _HEX), "{}"),
        ("wlan key", "8839-2201-7755", "Our WLAN key is {}"),
        ("card code", "729", "CVC {}"),
        ("possessive", "5518", "Die PIN meiner EC-Karte ist {}"),
        ("at somebody's", "Blumenwiese42", "Das WLAN-Passwort bei Oma ist {}"),
        ("to log in", "Pa$$w0rd", "Use admin / {} to log in"),
        ("with code", "9921", "the alarm is disarmed with code {}"),
        ("several codes", "3321-5678, 8765-4329", "2FA backup codes: {}"),
        ("word and digits", "deadbeefcafebabe1234", "auth_token: {}"),
    ]  # fmt: skip


SECRETS = tuple((name, secret, frame.format(secret)) for name, secret, frame in _made())
_SHA = _some(40, _HEX)
HARMLESS = (
    f"commit {_SHA} fixed it",
    f"revert {_SHA[:12]} before the release",
    f"sha256:{_some(64, _HEX)} is the image",
    f"integrity sha512-{_some(86)}==",
    f"the request id was {_uuid()}",
    f"Order {_uuid()} is paid",
    f"https://docs.google.com/document/d/{_some(44, _URL)}/edit",
    f"https://www.youtube.com/watch?v={_some(11, _URL)}",
    f"see https://acme.dev/issues/48213?tab=comments#c{_some(9, _DIGITS)}",
    f"https://open.spotify.com/playlist/{_some(22)}",
    "The rate limiter is a token bucket with 100 tokens.",
    "the secret of good bread is time",
    "password reset flow is broken",
    "The password is too short.",
    "The password is stored as a bcrypt hash.",
    "password: required",
    "my password is expired again",
    "Passwords must be 12 characters long.",
    "Das Passwort ist falsch.",
    "Das Passwort ist zu kurz",
    "Kim forgot the password to the wiki.",
    "the password manager is 1Password",
    "Token: the smallest unit of text that a model reads",
    "We use 4096 tokens per request",
    "max_tokens=2048",
    "pass: the salt",
    "Pass me the salt, please.",
    "The key is to listen first.",
    "The key is under the mat",
    "primary key: user_id",
    "The API key belongs in the vault, not in chat",
    "api_key = os.environ['ACME_KEY']",
    "password = getpass.getpass()",
    "def login(user: str, password: str) -> Token:",
    "password=${DB_PASSWORD}",
    "token: <your-token-here>",
    "SECRET_KEY=changeme",
    "password: ********",
    "Authorization: Bearer $TOKEN",
    "Use Bearer authentication for the gateway",
    "SGVsbG8gd29ybGQ= decodes to a greeting",
    "postgres://localhost:5432/app",
    "https://acme.dev:8443/health",
    "git@github.com:acme/app.git",
    "version 2.14.3 of pydantic, 0.22.0 of msgspec",
    "ISBN 978-3-16-148410-0",
    "ISBN 9783161484100",
    "call me at +49 30 901820",
    "My birthday is 1985-04-12",
    "The meeting code is on the invitation",
    "exit code is 1",
    "The zip code is 94107",
    "error code: 40412",
    "The status code is 2004",
    "Postcode: 10115",
    "pin 13 drives the LED",
    "Pin the message to the channel",
    "AbstractSingletonProxyFactoryBeanConfigurationManager",
    "org.springframework.beans.factory.support.DefaultListableBeanFactory",
    "src/lukasa/service/retrieval/read_methods.py",
    "/usr/local/lib/python3.11/site-packages/numpy/core/_multiarray_umath.so",
    "npm_config_registry and npm_package_version are set",
    "hf_hub_download fetches the file",
    "sk-learn-compatible estimators",
    "The pk_index column is unique",
    "Kai plays the piano",
    "wifi: works again",
    "WLAN: only upstairs",
    "The login page is slow since 2031-03-04",
    "1234 5678 9012 3456 is no card",
    "tracking number 00340434161094042557",
    "The invoice 2031-000412 is due",
    "Incident 2042: the cache was cold",
    "2 x 16 GB DDR5-5600 memory",
    "The combination of tea and cake works",
    "Their secret weapon is patience.",
    "a secret santa with 12 people",
    "Key dates: 3 May and 17 June",
    "The keyboard shortcut is Ctrl+Shift+P",
    "auth: moved to the gateway in v2.3",
    "credentials are rotated every 90 days",
    "The token expires after 3600 seconds",
    "session id cookies are marked HttpOnly",
    "arn:aws:iam::123456789012:role/deploy-role",
    "us-east-1a, m5.2xlarge, ami-0abcdef1234567890",
    "docker run -p 8080:80 nginx:1.27",
    "ssh -p 2222 kim@host.acme.dev",
    "mysql -u root -p shop",
    "The passphrase is stored in the keychain of the laptop",
    "phrase of the day: carpe diem",
    "Der Schlüssel liegt unter der Matte",
    "Das Geheimnis ist gute Butter",
    "素食",
    "Kim's account is paid until 2031",
    "lks_ is the prefix of a grant's token",
    "BREAKING CHANGE: drop Python 3.10",
    "Zm9v is the base64 of foo",
    f"public key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{_some(42)}",
    f"fingerprint SHA256:{_some(43)}",
    "bearer authentication-scheme",
    "S3 key: backups/2024/01/db.tar.gz",
    "model claude-sonnet-4-5-20250929",
    "id=1234567890123456",
    "my password is none of your business",
    "Password: ask Kim",
    "password: see 1Password",
    "Who knows the PIN of the printer?",
    "Use code SUMMER20 for a discount",
    "/home/kim/projects/secret-santa-2024/token.txt",
    "The session token expires in 15 minutes",
    "token_count: 4096",
    "The meeting id is 812 3456 7890",
    "IPv6 2001:0db8:85a3:0000:0000:8a2e:0370:7334",
    "Mein Passwort ist sicher.",
    "VIN WVWZZZ1JZXW000001",
)
