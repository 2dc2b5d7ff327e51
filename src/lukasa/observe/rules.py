"""Patterns for statements that are worth keeping, and for ones that only look so. English, and deliberately narrow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from lukasa.model.requests import Request, forgetting, request, sentence
from lukasa.model.transcript import Utterance
from lukasa.model.values import Gate, Lifetime
from lukasa.observe.observation import Observation, Priority


class Phrases:
    """Several patterns, any of which may match. Compiled at the first search, because there are many."""

    __slots__ = ("_flags", "_pattern", "_patterns")

    def __init__(self, *patterns: str, case: bool = False) -> None:
        self._patterns = patterns
        self._flags = re.NOFLAG if case else re.IGNORECASE
        self._pattern: re.Pattern[str] | None = None

    def search(self, text: str) -> re.Match[str] | None:
        if self._pattern is None:
            self._pattern = re.compile("|".join(f"(?:{pattern})" for pattern in self._patterns), self._flags)
        return self._pattern.search(text)


# Most words before a statement may also begin it ("No dogs …", "Right turns …", "Wait times …"). So a mark, or a word
# that begins a new clause, must set them apart.
_APART = (
    r"(?:\s*(?:[,:;!—–]+|\.(?!\s*\d)|-(?=\s))[\s,:;.!—–]*(?:-\s+)?"
    r"|\s+(?=(?:i|we|my|our|the|he|she|they|it|actually|always|never|please)\b))"
)
_MARKED = r"\s*(?:[,:;.!—–]+|-(?=\s))[\s,:;.!—–]*(?:-\s+)?"
# Words before a statement that are not part of it.
LEAD = re.compile(
    r"^(?:[-*•]\s+|\d{1,2}[.)]\s+)?(?:"
    r"(?:btw|by the way|fyi|for the record|just so you know|one more thing|heads up|please note(?: that)?"
    r"|keep in mind that|as i said)\b[\s,:;.!—–-]*"
    rf"|(?:also|and|but|so|ok|okay|oh|hey|yes|yeah|hmm|um)\b{_APART}"
    rf"|(?:well|right|sure|thanks|thank you|great|perfect|note|important|reminder|again)\b{_MARKED})+",
    re.IGNORECASE,
)
# Words that announce a correction.
CORRECTING = re.compile(
    r"^(?:(?:no|nope|nah|wrong|not quite|incorrect|actually|(?:small )?correction|sorry|wait"
    r"|that(?:['’]s| is| was) (?:wrong"
    r"|not right"
    r"|incorrect|not correct|not true|outdated|no longer true)|i was wrong|i misspoke|scratch that|i meant|i mean)"
    rf"\b{_APART})+",
    re.IGNORECASE,
)
# "X is not A but B", "X is B, not A": B holds.
NOT_BUT = re.compile(
    r"^(?P<head>.{3,120}?\b(?:is|are|was|runs on|uses|lives in|works at"
    r"|works for))\s+not\s+(?:called\s+)?(?P<old>[^,;]{1,80}?),?\s+but\s+(?P<new>.{1,160})$",
    re.IGNORECASE,
)
INSTEAD = re.compile(
    r"^(?P<new>.{8,200}?)(?:,|\s[—–-])\s*(?:and\s+)?not\s+(?P<old>(?!only\b|just\b|yet\b|because\b|if\b|when\b"
    r"|before\b|until\b|after\b|in a\b)[^,;]{1,80})$",
    re.IGNORECASE,
)

# Questions, tasks, doubts and temporary states.
ASKING = Phrases(
    r"\?\s*[\"')\]]*$",
    r"^(?:what|who|whom|whose|where|when|why|how|which|is|are|was|were|do|does|did|can|could|would|will|should|shall"
    r"|may|have|has) (?:i|you|we|it|they|there|this|that|the|a|an|my|our|your|to|is|are|do|does|did|can|could|would"
    r"|should|long|many|much|about|come)\b",
    r"^(?:tell|show|remind|ask|give|explain|help|let) (?:me|us)\b",
    r"^i (?:wonder|am wondering|was wondering|want to know|need to know|don['’]t (?:know|understand|get|see|remember)"
    r"|can['’]t (?:see|find|tell|figure))\b",
)
TASK = Phrases(
    r"^(?:please |now |then |first |next |finally |can you |could you |just )*(?:add|fix|write|create|make|run|rerun"
    r"|update|change"
    r"|remove|delete|rename|move|refactor|implement|check|look|see|find|search|read|open|show|print|list|explain"
    r"|try|revert|undo|redo|continue|go ahead|go on|proceed|stop|wait|push|commit|merge|rebase|install|build|deploy"
    r"|test"
    r"|debug|investigate|review|generate|convert|replace|insert|append|put|set|clean|format|summari[sz]e|translate"
    r"|draft|send|start|restart|finish|do|give|tell|help|let me|figure|rewrite|simplify|split|extract|copy|paste"
    r"|compare|sort|compute|calculate|document|describe|think|reply|answer|respond|ignore|forget|pretend|act|repeat"
    r"|click|type|select|choose|pick|bump|upgrade|downgrade|download|upload|export|import|apply|enable|disable"
    r"|turn)\b",
    r"^(?:i(?:['’]d| would)? (?:want|need|like|love) (?:you |us )?to|i want (?:a|an|the|this|that|it)|we need to"
    r"|you (?:need|have|should|must|can|could|may)"
    r"|we should (?:probably |maybe )?(?:add|fix|try|look|check|see|write|make|remove)|i(?:['’]m| am) (?:going|trying"
    r"|about) to|i(?:['’]ll| will)\b|let(?:['’]s| us)"
    r" (?:see|try|look|start|do|move on|continue|fix|add|check|run|get|take|make|talk|think|begin|keep going|write"
    r"|test|leave|skip|wait))\b",
)
DOUBT = Phrases(
    r"\b(?:maybe|perhaps|probably|possibly|might|i think|i guess|i suppose|i believe|not sure|not certain|unsure"
    r"|i(?:['’]m| am) wondering|we could|could be|may be|seems? (?:to|like)|apparently|i heard|rumou?r"
    r"|as far as i know|afaik|iirc"
    r"|if i remember|presumably|supposedly|more or less|leaning towards?|considering|tempted to|thinking of"
    r"|thinking about)\b",
)
HEDGE = re.compile(
    r"^(?:(?:i (?:think|guess|suppose|believe|heard)|maybe|perhaps|probably|possibly|apparently|presumably|supposedly"
    r"|as far as i know|afaik|iirc)\b(?: that)?[\s,]*)+",
    re.IGNORECASE,
)
PASSING = Phrases(
    r"\b(?:for now|just (?:this|for) (?:once|now|today|this)|this (?:once|time|one time)|only (?:this"
    r"|for this) (?:time|once)|for the moment|temporar(?:y|ily)"
    r"|for today|right now|at the moment|in this (?:session|conversation|chat|pr|pull request|commit|branch|file|test"
    r"|case|example|exercise)"
    r"|for this (?:session|conversation|chat|pr|pull request|commit|test|demo|task|one|example|exercise|run)"
    r"|until (?:later|tomorrow|tonight|i say)"
    r"|currently (?:failing|broken|down|debugging|looking|trying|working)|this (?:morning|afternoon|evening|week)"
    r"|today i|tonight)\b",
    r"^(?:if|suppose|imagine|say|let['’]s say|assume|assuming|hypothetically|in theory|for example|e\.g\.|once"
    r"|whenever you(?:['’]re| are) ready)\b",
)
TRANSIENT = Phrases(
    r"\b(?:is|are|was|were|keeps?|still|gets?|got|looks?|seems?|feels?|went|goes)\s+(?:\w+ly\s+|still\s+|now\s+"
    r"|not\s+|all\s+|so\s+|too\s+|very\s+|a bit\s+|quite\s+|back\s+|completely\s+)*"
    r"(?:fail(?:s|ed|ing)?|broken?|red|green|slow(?:er)?|fast(?:er)?|stuck|missing|wrong|done|fine|good|great|bad"
    r"|ready|working|weird|odd|strange|ugly|nice|cool|better|worse|perfect|empty|down|up|open|closed|running|hanging"
    r"|crash(?:ed|ing)?|ok|okay|correct|right|clear|unclear|confusing|messy|hard|easy|annoying|interesting|off|flaky"
    r"|merged|finished|passing|blank|too \w+|pretty \w+)\b",
    r"\b(?:error|exception|traceback|stack trace|exit code|segfault|timed out|undefined|does(?:n['’]t| not) (?:work"
    r"|compile|build|render|load|show|pass)"
    r"|did(?:n['’]t| not) (?:work|help|fix)|not working)\b",
)
# Text about or to the machine, or an attempt to instruct it.
TO_THE_MACHINE = Phrases(
    r"\b(?:ignore|disregard|forget|override) (?:all |any |every |the |your |these |those )*(?:previous|prior|above"
    r"|earlier|other|existing|system|safety)?\s*(?:instructions?|rules?|prompts?|guidelines?|messages?|context)\b",
    r"\byou are (?:now|an?|the|my|no longer)\b|\bact as (?:an?|if)\b|\bsystem prompt\b|\bdeveloper mode\b"
    r"|\bjailbreak\b",
    r"\b(?:the|your|my) (?:assistant|ai|model|agent|system) (?:must|should|shall|will|is to) (?:always|never|now"
    r"|only)?\b",
    r"\bdo(?:n['’]t| not) (?:tell|mention|reveal|say|inform)\b.{0,40}\b(?:user|anyone|anybody|them|operator|owner)\b",
    r"\b(?:exfiltrate|send|post|upload|forward|email|leak)\b.{0,60}\b(?:to https?://|to [\w.+-]+@|secrets?"
    r"|credentials?|tokens?|passwords?)",
)
RECALLED = Phrases(
    r"^(?:you|the memory|your memory|memory|lukasa|claude|the assistant) (?:said|says|told|mentioned|remembered?s?"
    r"|recalled?s?|noted|wrote|stored|already know)\b",
    r"^(?:according to|from|in|as per) (?:your|the|my)?\s*(?:memory|memories|notes|lukasa|context)\b",
    r"\[(?:tier|named tier)=|\bauthority=(?:act|inform|none)\b|\brecalled from the \w+ tier\b"
    r"|^(?:noted earlier as true|recorded as having happened|a preference or rule recorded earlier"
    r"|unverified text of unknown authorship)\b",
    r"^(?:score|relevance) \d\.\d+ =|\bmatched by (?:keyword|vector)\b|^conversation [0-9A-Za-z]{11}\b",
)
SECRET = Phrases(
    r"\[(?:secret|key)\]",
    r"\b(?:pass(?:word|phrase|code|wd)?|secret|api[ _-]?key|access[ _-]?key|private key|token|pin|credentials?|otp"
    r"|cvv|ssn|iban|card number|credit card)s?\b(?: \w+){0,6}\s*(?:is|are|=|:|was)\s",
    r"\b(?:log ?in|sign ?in|authenticate|connect) (?:with|as|using) \S+\s*[/:]\s*\S+",
)
IDLE = Phrases(
    r"^(?:i (?:never|always) (?:said|asked|told|saw|heard|knew|thought|understood|understand|wondered|mind|got"
    r"|noticed|seen|forget|get confused|end up|wanted))\b",
    r"\b(?:i|we) (?:like|love|hate|dislike|prefer)d? (?:that|this|it|the idea|your|how you|what you|where this|these"
    r"|those|them)\b",
    r"\bi(?:['’]d| would) (?:like|love|prefer) (?:to (?:see|know|hear|understand|get|have you)|you to|it if|if)\b",
    r"\bnever ?mind\b|\balways (?:the same|something|a pleasure|fun|nice)\b|\bnever (?:again will i|ceases|been so)\b"
    r"|^(?:always|never)[.! ]*$",
    r"\b(?:lol|haha|just kidding|j/k|joking)\b",
)
EDITING = Phrases(
    r"^(?:please )?(?:add|insert|append|put|place|move|paste|replace|delete|remove|rename|change)\b",
    r"\b(?:line|paragraph|heading|section|sentence|cell|row|column) \d+\b",
)


CONFIDENCE = 0.8
DOUBTED = 0.5
LEAST_WORDS = 3
MOST_SENTENCE = 500
MOST_REQUEST = 2000

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?=\S)[^.!?\n]+)*[.!?]*")
_FENCED = re.compile(r"^[ \t]{0,3}(```|~~~).*?(?:^[ \t]{0,3}\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"^[ \t]*(?:>|\||\+{3}|-{3}|@@|diff |at \S+\(|File \").*$", re.MULTILINE)
_ROLES = (
    "boss|manager|lead|wife|husband|partner|son|daughter|brother|sister|mother|father|mum|mom|dad|colleague|coworker"
    "|teammate|friend|client|customer|editor|agent|doctor|teacher|neighbou?r|assistant|designer|reviewer|maintainer"
    "|cto|ceo|cfo|founder|co-founder|architect|owner|contact|landlord|dog|cat|team|company|tech lead|product manager"
)
_THING = r"(?:the|our|my|this|that|all|every|each) (?:[\w'’./&+-]+ ){1,6}?"
# Words that are capitalised only because they begin a sentence, and name nothing.
_NOBODY = (
    r"(?!(?:Here|There|This|That|These|Those|It|Its|What|Which|Who|Where|When|How|Why|Now|Then|So|One|All|Some|Any"
    r"|Both|He|She|They|We|You"
    r"|I|My|Our|Your|The|A|An|Nothing|Everything|Something|Anything|Nobody|Everybody|Somebody|Anybody|Someone"
    r"|Everyone|Anyone|Today"
    r"|Not|No|Yes|If|But|And|Or|Only|Just|Also|Maybe|Perhaps|Still)\b)"
)
_NAMED = (
    _NOBODY
    + r"(?:[A-Z][\w'’.&+-]*|[\w-]+\.(?:py|js|ts|go|rs|md|toml|ya?ml|json|sh|com|dev|io))(?: [A-Z][\w'’.&+-]*){0,3} "
)
_RELATION = (
    r"(?:runs? (?:on|in|as|at|under|every|nightly|daily|weekly|behind|inside|with)|listens? (?:on|at)|lives? (?:in|at"
    r"|on|under)|resides? (?:in|at|on)"
    r"|sits? (?:in|behind|on)|(?:is|are) (?:deployed|hosted|stored|located|kept|written|built|based|installed|mounted"
    r"|backed up|served|managed|owned|maintained"
    r"|configured|defined|generated|signed|released|published|pinned|rotated|archived|called|named|run|licensed"
    r"|encrypted|scheduled|due|set to|limited|capped|mirrored|tagged)\b"
    r"|uses?|depends? on|talks? to|connects? to|points? (?:to|at)|requires?|expects?|needs? (?:python|node|java|go"
    r"|rust|at least|sudo|root|a vpn|the vpn|\d)|supports?"
    r"|defaults? to|starts? (?:at|on|with)|ends? (?:at|on)|expires?|costs?|weighs?|belongs? to|reports? to"
    r"|works? (?:on|at|for|in|as|from)|owns?|maintains?|leads?"
    r"|handles?|(?:is|are) responsible for|(?:is|are) in charge of|joined|moved to|was renamed|(?:has been|was|were"
    r"|is|are) (?:renamed|moved|migrated|replaced|retired|deprecated)\b"
    r"|comes? from|goes? (?:in|into|to|under)|reads? from|writes? to|syncs? (?:to|with|from)|takes? (?:about "
    r"|around )?\d|meets? (?:on|every)|happens? (?:on|every)|closes? (?:on|at)|opens? (?:on|at)"
    r"|prefers?|likes?|speaks?|is allergic|is called|stands for|means)\b"
)
_ATTRIBUTE = (
    r"\b(?:name|title|colou?r|deadline|version|capital|address|e-?mail|phone|birthday|anniversary|age|price|port|host"
    r"|hostname|url|domain|endpoint|bucket|region"
    r"|favou?rite(?: \w+)?|timezone|time zone|budget|username|user name|handle|nickname|role|job|employer|owner"
    r"|manager|maintainer"
    r"|lead|language|framework|database|branch|licen[cs]e|limit|timeout|currency|default|convention|policy|rule"
    r"|standard|command|path|directory|folder"
    r"|repo|repository|editor|shell|stack|codename|working title|villain|hero|heroine|protagonist|antagonist|narrator"
    r"|setting|genre|target|goal|release date|launch date"
    r"|retention|schedule|cluster|queue|registry|namespace|table|schema|model|prefix|suffix|encoding|line length"
    r"|indent(?:ation)?|pronouns|diet|blood type|size|office|hometown|backup|server|staging|production)\b"
)


class _Rule(Struct, frozen=True):
    sort: str
    priority: Priority
    category: str
    phrases: Phrases


def _rule(sort: str, priority: Priority, category: str, *patterns: str, case: bool = False) -> _Rule:
    return _Rule(sort, priority, category, Phrases(*patterns, case=case))


RULES: tuple[_Rule, ...] = (
    _rule(
        "rule", "high", "rules-conventions",
        r"^(?:please )?(?:always|never|do(?:n['’]t| not) ever)\b",
        r"\bfrom now on\b|\bfrom here on\b|\bgoing forward\b|\bin (?:the )?future,? (?:please |always |never )?\w+",
        r"\b(?:must|should|shall|may|can) (?:always|never|only|not ever)\b|\bmust(?: not|n['’]t)? (?:be|have|use|go"
        r"|pass|run|start|end|include|contain|stay|match)\b",
        r"\b(?:is|are) (?:not allowed|forbidden|prohibited|mandatory|off[- ]limits)\b|\bunder no circumstances\b"
        r"|\bno exceptions\b",
        r"^(?:every|each) (?:time|commit|pr|pull request|release|branch|test|function|module|file|endpoint|migration"
        r"|chapter|page)\b.{0,40}\b(?:must|needs?|has to|have to|should|gets?|starts?|ends?|is|are)\b",
        r"\b(?:we|i) (?:always|never|only(?: ever)?) (?!know|think|care|mind)\w+",
        r"\b(?:we|i) (?:don['’]t|do not) (?!know|think|have|need|see|understand|care|want|get|mind|remember|believe"
        r"|agree|like)\w+",
        r"^no \w+(?: \w+){0,5} (?:without|before|after|on fridays?|in)\b",
        r"^use .{2,60}(?:, never | instead of | rather than |, not | over )",
        r"\b(?:our|the|my) (?:\w+ ){0,3}(?:rule|convention|policy|standard|guideline|house style) (?:is|are|says"
        r"|for)\b",
        r"^(?:do(?:n['’]t| not)|stop|avoid) .{4,}\b(?:ever again|any ?more|in this (?:repo|project|codebase|workspace"
        r"|company|book)|ever)\b",
    ),
    _rule(
        "preference", "medium", "preferences",
        r"\bi(?: \w+ly)? (?:prefer|dislike|hate|love|adore|enjoy|can['’]t stand|cannot stand)\b|\bi(?: really"
        r"| usually| generally)? (?:don['’]t|do not) (?:like|enjoy|drink|eat|want|use)\b|\bi(?: really"
        r"| usually)? like\b"
        r"|\bi(?:['’]d| would)(?: much)? rather\b|\bi(?: am|['’]m) (?:not )?a (?:big |huge )?fan of\b"
        r"|\bmy preference is\b|\bmy favou?rite\b|\bi (?:usually|normally|typically) (?:use|work|write|drink|eat|run"
        r"|start|read|want)\b"
        r"|\bwe prefer\b|\bworks best for me\b|\bi want (?:\w+ ){0,2}?(?:answers?|replies|responses|code"
        r"|comments|tests|commits?|explanations?|examples|summaries)\b",
    ),
    _rule(
        "decision", "medium", "projects",
        r"\b(?:we|i|the team|they|the board|management)(?: have| has|['’]ve)?(?: just| now| finally"
        r"| also)? (?:decided|agreed|settled|chosen|chose|picked|opted|committed|voted|went with|are going with"
        r"|will go with|dropped|abandoned|ruled out|switched|migrated|moved)\b",
        r"\blet(?:['’]s| us) (?:go with|stick (?:with|to)|settle on|switch to|standardi[sz]e on|use|call (?:it|the"
        r"|him|her)|adopt|drop)\b",
        r"\b(?:the )?decision(?: is|:| was)\b|\bdecided to\b|\bADR[- ]?\d+\b|\bwe(?:['’]re| are) (?:going with"
        r"|switching to|moving to|migrating to|dropping|sticking with|standardi[sz]ing on)\b",
    ),
    _rule(
        "name", "high", "people-relationships",
        r"\bmy (?:\w+ )?name is\b|\bcall me\b|\bi(?: am|['’]m) called\b|\bmy pronouns are\b|\bi go by\b",
    ),
    _rule(
        "person", "medium", "people-relationships",
        rf"\b(?:my|our|the) (?:\w+ )?(?:{_ROLES})(?:['’]s name)?,? (?:\w+,? )?(?:is|are|was|works|lives|prefers|likes"
        rf"|wants|owns|handles|hates|speaks|joined|left|has|does|reviews|approves)\b",
        r"\bi(?: am|['’]m) (?:allergic|vegetarian|vegan|based|located|from|married|left-handed|right-handed|dyslexic"
        r"|colou?r[- ]?blind|responsible|in charge|on call|the (?:author|owner|maintainer|lead|only|founder|cto"
        r"|ceo))\b",
        r"\bi(?: am|['’]m) an? (?!bit|little|lot|fan|big|huge|while|few|couple|moment|minute|mess|idiot|afraid"
        r"|bug)(?:[\w-]+ ){0,3}(?:developer|engineer|designer|writer|author|teacher|student|doctor|nurse|lawyer"
        r"|scientist|researcher|manager|founder|architect|analyst|consultant|novelist|journalist|translator|musician"
        r"|photographer|vegetarian|vegan|beginner|native speaker|administrator|admin|editor|producer|electrician"
        r"|chemist|biologist|physicist|economist|accountant|freelancer|parent|runner|pilot)\b",
        r"\bi (?:live|reside|work|study|grew up|was born|moved|speak|own|maintain|lead|manage|teach|joined) (?:in|at"
        r"|on|to|for|as|from|with|\w+)\b",
    ),
    _rule(
        "person", "medium", "people-relationships",
        rf"^{_NAMED}(?:is|was) (?:my|our|the|a|an) \w+|^{_NAMED}(?:owns|maintains|leads|handles|manages|reviews"
        rf"|approves|runs|reports to|works|lives|joined|left|moved|prefers|likes|dislikes|speaks|signs)\b",
        case=True,
    ),
    _rule(
        "command", "medium", "operations",
        r"^to (?:run|deploy|build|test|start|stop|release|restart|rebuild|lint|format|reset|seed|migrate|install"
        r"|connect|log in|publish|regenerate|update|check|reproduce|debug|get|enter|back up|restore)\b.{0,80}\b(?:run"
        r"|use|call|execute|type|do|you need|you have to|it takes|set|go through|ssh)\b",
        r"^(?:run|use|call|execute) (?:`[^`]+`|(?:make|npm|pnpm|yarn|uv|cargo|docker|kubectl|git|pytest|go|python3?"
        r"|\./)\S* ?.{0,60}?) (?:to|for|before|after|when|whenever|in order to|every)\b",
        r"\b(?:tests?|builds?|deploys?|deployments?|releases?|migrations?|docs?|backups?|jobs?|linting"
        r"|formatting) (?:are|is|run|runs|happens?|start|starts|live|lives|go|goes) (?:run |done |started |triggered "
        r"|built |deployed |made )?(?:with|by|through|via|using|from|in|under|on|every)\b",
        r"`[^`]{3,}` (?:runs?|starts?|builds?|deploys?|does|is how|resets?|gives|prints|needs|requires|takes|must"
        r"|installs?|creates?|checks?|restarts?)\b",
    ),
    _rule(
        "fact", "medium", "system-architecture",
        rf"^{_THING}{_RELATION}",
        r"^we (?:use|run|deploy|host|store|keep|target|support|ship|release|build|publish|track|log|write|test|format"
        r"|lint|pin|monitor|bill|back up|rotate|log into|meet|work|sell|serve|require|call)\b.{4,}",
        rf"^(?:the|our|my) (?:[\w'’./+-]+ ){{0,5}}?(?=[^.]*{_ATTRIBUTE})[^,;]{{1,80}}? (?:is|are|will be|was set to"
        rf"|changed to|is now|are now) (?!that\b|what\b|why\b|how\b|not\b|to\b|it\b)",
        r"(?:^|\s)(?:~|\.{1,2})?/(?:[\w.-]+/)+[\w.-]*.{0,60}\b(?:holds?|contains?|is where|is the|are|has|keeps)\b"
        r"|\b(?:lives?|stored|found|kept|located|go|goes|are|is) (?:in|under|at) (?:`)?(?:~"
        r"|\.{1,2})?/?(?:[\w.-]+/)+[\w.-]*",
    ),
    _rule(
        "fact", "medium", "projects",
        rf"^{_NAMED}{_RELATION}|^{_NOBODY}[A-Z][\w-]+ (?:[a-z][\w-]+ ){{0,2}}{_RELATION}",
        r"^(?:[A-Z][\w-]+)(?: [A-Za-z][\w-]+){0,4} (?:is|are) (?:called|named|the|our|at|on|in|due|now|no longer) \S",
        case=True,
    ),
)  # fmt: skip
_STATEMENT = re.compile(
    r"\b(?:is|are|was|were|has|have|runs?|uses?|lives?|works?|needs?|should|must|lists?|listens?|starts?|ends?|means?"
    r"|goes|costs?"
    r"|prefers?|called|named|belongs?|moved|renamed|expires?|takes?|requires?|depends|wants?|owns?|reports?|speaks?"
    r"|meets?|points?|writes?|reads?)\b",
    re.IGNORECASE,
)


def observe(utterances: Iterable[Utterance]) -> list[Observation]:
    """The explicit statements of the user in these messages."""
    found = [o for u in utterances if u.role == "user" for o in look(u.text, u.id)]
    return list({(o.text.casefold(), o.message): o for o in found}.values())


def look(text: str, message: str = "") -> Iterator[Observation]:
    """The explicit statements in one message, each with its span."""
    asked = request(text)
    if asked is not None:
        if asked.content and asked.lifetime is not Lifetime.CONVERSATION and not SECRET.search(asked.content):
            yield _requested(asked, text, message)
        return
    if forgetting(text) is not None:
        return
    plain = _blanked(text)
    for found in _SENTENCE.finditer(plain):
        observed = _statement(found[0])
        if observed is not None:
            said, rule, doubted = observed
            start = found.start() + len(found[0]) - len(found[0].lstrip())
            end = found.start() + len(found[0].rstrip())
            verdict, confidence = (Gate.HOLD, DOUBTED) if doubted else (Gate.ALLOW, CONFIDENCE)
            reason = "said with doubt" if doubted else ""
            yield Observation(
                said, rule.priority, verdict, confidence, rule.category, message, start, end, "user", reason
            )


def _blanked(text: str) -> str:
    """Replace listings and quotations, which are somebody else's words, by white space of the same length."""
    for pattern in (_FENCED, _QUOTED):
        text = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]).replace(" ", "\n", 1), text)
    return text


def _requested(asked: Request, text: str, message: str) -> Observation:
    weight = asked.importance
    priority: Priority = "medium" if weight is None else "high" if weight > 0.5 else "low"
    content = asked.content[:MOST_REQUEST]
    return Observation(
        content, priority, Gate.ALLOW, 0.95, "", message, 0, len(text), "user", "asked to be remembered", asked
    )


def _statement(raw: str) -> tuple[str, _Rule, bool] | None:
    """The statement of a sentence, its rule, and whether it is in doubt; None if it is not worth keeping."""
    bare = LEAD.sub("", raw.strip()).strip()
    corrected = CORRECTING.sub("", bare).strip()
    corrects = corrected != bare and bool(corrected)
    bare = corrected if corrects else bare
    if len(bare) > MOST_SENTENCE or len(bare.split()) < LEAST_WORDS or bare.endswith(":") or _of_no_use(bare):
        return None
    positive = _positive(bare)
    forms = {bare: None, positive: None, sentence(HEDGE.sub("", bare)): None}
    rule = next((rule for rule in RULES if any(map(rule.phrases.search, forms))), None)
    if rule is None and (corrects or positive != bare) and _STATEMENT.search(bare):
        rule = _CORRECTION
    if rule is None or _ordered(bare, rule):
        return None
    if corrects or positive != bare:
        rule = _Rule("correction", "high", rule.category, rule.phrases)
    return sentence(positive), rule, bool(DOUBT.search(bare))


_CORRECTION = _rule("correction", "high", "", "")


def _of_no_use(said: str) -> bool:
    return any(pattern.search(said) for pattern in (ASKING, PASSING, TO_THE_MACHINE, RECALLED, SECRET, IDLE))


def _ordered(said: str, rule: _Rule) -> bool:
    """Whether a sentence is a task for now or a temporary state; not if it is a rule, a decision or a preference."""
    if rule.sort in ("rule", "decision", "preference", "name"):
        return bool(EDITING.search(said)) and rule.sort != "rule"
    return bool((TASK.search(said) and rule.sort != "command") or TRANSIENT.search(said))


def _positive(said: str) -> str:
    """Reduce a correction to the part that holds: "the port is 5433, not 5432" becomes "the port is 5433"."""
    bare = said.rstrip(".! ")
    if found := NOT_BUT.match(bare):
        return f"{found['head']} {found['new']}"
    if found := INSTEAD.match(bare):
        return found["new"]
    return said
