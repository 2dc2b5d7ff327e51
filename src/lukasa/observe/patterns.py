"""How people say what is worth keeping, and how they say what only looks like it. English, and deliberately narrow."""

from __future__ import annotations

import re


class Phrases:
    """Ways to say something, any of which will do. Compiled when first looked for, since there are many."""

    __slots__ = ("_flags", "_pattern", "_patterns")

    def __init__(self, *patterns: str, case: bool = False) -> None:
        self._patterns = patterns
        self._flags = re.NOFLAG if case else re.IGNORECASE
        self._pattern: re.Pattern[str] | None = None

    def search(self, text: str) -> re.Match[str] | None:
        if self._pattern is None:
            self._pattern = re.compile("|".join(f"(?:{pattern})" for pattern in self._patterns), self._flags)
        return self._pattern.search(text)


# Words before a statement that are no part of it.
LEAD = re.compile(
    r"^(?:[-*•]\s+|\d{1,2}[.)]\s+)?(?:(?:btw|by the way|fyi|for the record|just so you know|also|and|but|so|ok|okay"
    r"|oh|well|hey|yes|yeah"
    r"|right|sure|thanks|thank you|great|perfect|hmm|um|note|one more thing|important|reminder|heads up|please note"
    r"(?: that)?|keep in mind that|as i said|again|in general|generally)\b[\s,:;.!—–-]*)+",
    re.IGNORECASE,
)
# A correction says so before it says what.
CORRECTING = re.compile(
    r"^(?:(?:no|nope|nah|wrong|not quite|incorrect|actually|(?:small )?correction|sorry|wait"
    r"|that(?:['’]s| is| was) (?:wrong"
    r"|not right"
    r"|incorrect|not correct|not true|outdated|no longer true)|i was wrong|i misspoke|scratch that|i meant|i mean)"
    r"\b[\s,:;.!—–-]*)+",
    re.IGNORECASE,
)
# "X is not A but B", "X is B, not A": what holds is B.
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

# Questions, tasks, doubts and passing things.
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
# Said about or to the machine; or an attempt to speak through it.
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
