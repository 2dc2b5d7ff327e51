"""Word patterns that say how a sentence is meant: asked, doubted, imagined, retold, passing, secret, or to the machine.

English and German, with the commonest words of French and Spanish. The classifier uses the patterns as features; the
rules use some of them as limits: no weight lifts a question into memory, or a doubt beyond a hold.
"""

from __future__ import annotations

import re


class Phrases:
    """Several patterns, any of which may match. Compiled at the first search, because there are many."""

    __slots__ = ("_pattern", "_patterns")

    def __init__(self, *patterns: str) -> None:
        self._patterns = patterns
        self._pattern: re.Pattern[str] | None = None

    def search(self, text: str) -> re.Match[str] | None:
        if self._pattern is None:
            self._pattern = re.compile("|".join(f"(?:{pattern})" for pattern in self._patterns), re.IGNORECASE)
        return self._pattern.search(text)


ASKING = Phrases(
    r"[?？]\s*[\"'”’)\]]*$",
    r"^(?:and |so |but |ok(?:ay)?,? )?(?:what|who|whom|whose|where|when|why|how|which|is|are|was|were|do|does|did|can"
    r"|could|would|will|should|shall|may|have|has|any) (?:i|you|we|it|they|there|this|that|the|a|an|my|our|your|is|are"
    r"|do|does|did|can|could|would|should|long|many|much|about|come|idea)\b",
    r"^(?:tell|show|remind|ask|give|explain) (?:me|us)\b",
    r"^i (?:wonder|am wondering|was wondering|want to know|need to know)\b|^ich frage mich\b",
    r"^(?:und |also )?(?:was|wer|wen|wem|wo|wann|warum|wieso|wie|welche[rsnm]?) (?:ich|du|wir|es|er|sie|ihr|man|das|der"
    r"|die|ist|sind|war|kann|soll|muss|hat|haben|meinst|machst|lange|viele?|oft)\b",
    r"^(?:kannst|könntest|würdest|hast|bist|willst|weißt|soll|sollen|können|geht|gibt) (?:du|ich|wir|es|das|sie)\b",
)
DOUBT = Phrases(
    r"\b(?:maybe|perhaps|probably|possibly|might|presumably|supposedly|apparently|allegedly|conceivably|rumou?r"
    r"|afaik|iirc|unsure|tentatively|unless i['’]m mistaken)\b",
    r"\bi (?:think|guess|suppose|believe|assume|suspect|imagine|reckon|gather|heard|vaguely recall)\b",
    r"\bi(?:['’]m| am) (?:not (?:sure|certain|positive)|wondering|leaning|tempted|thinking (?:of|about)"
    r"|considering)\b|\bwe(?:['’]re| are) (?:considering|thinking (?:of|about)|leaning)\b",
    r"\b(?:we|it|there|that|he|she|they|i) (?:could|may)\b|\bmay (?:be|become|get|not|start|have)\b|\bcould be\b",
    r"\bas far as i (?:know|remember|can tell)\b|\bif i (?:remember|recall)\b|\bmore or less\b"
    r"|\bnot (?:sure|certain)\b|\b(?:seems?|appears?|looks?) (?:to|like|as if)\b|\bbest guess\b|\bchances are\b"
    r"|\bhave the feeling\b|\bwere wondering\b|\b(?:should|must) be .{1,40}, i (?:think|guess)\b",
    r"\b(?:likely|unlikely|undecided|tbd|hunch|vague(?:ly)?|torn between|my (?:impression|feeling) is|there is talk"
    r"|if i had to guess|i(?:['’]d| would) guess|could well be|(?:percent|fairly|pretty|almost) sure|with the (?:idea"
    r"|thought)"
    r"|haven['’]t decided|(?:nothing|not(?:hing)? yet|isn['’]t|not) (?:is )?(?:decided|official|final|confirmed"
    r"|settled))\b",
    r"\b(?:schwank(?:e|en)|dunkel in erinnerung|kann (?:gut )?sein|es heißt, |mit dem gedanken|prozent sicher"
    r"|unentschieden"
    r"|(?:noch )?nicht(?:s)? (?:entschieden|offiziell|sicher|bestätigt)|(?:entschieden|offiziell) ist (?:aber "
    r"|noch )?nichts"
    r"|irgendwer|tendenziell)\b",
    r"\b(?:vielleicht|wahrscheinlich|vermutlich|eventuell|möglicherweise|anscheinend|angeblich|womöglich|wohl|offenbar"
    r"|scheinbar|voraussichtlich|müsste|dürfte|unter umständen)\b",
    r"\bich (?:glaube|denke|meine|vermute|schätze|überlege|tendiere|nehme an|bin (?:mir )?(?:nicht|un)\s?sicher"
    r"|habe gehört)\b|\bwir überlegen\b|\b(?:könnte|kann) sein\b|\b(?:soweit|soviel|so weit|so viel) ich weiß\b"
    r"|\bmeines wissens\b|\brichtig erinnere\b|\bnicht (?:ganz )?sicher\b",
    r"\b(?:peut-être|probablement|je crois|je pense|quizás?|tal vez|probablemente|creo que|supongo|forse|talvez)\b",
)
UNREAL = Phrases(
    r"^(?:suppose|supposing|imagine|say|let['’]s say|assume|assuming|hypothetically|in theory|for example|e\.g\."
    r"|what if"
    r"|pretend|picture)\b",
    r"\bif (?:\w+ ){1,8}?(?:were|had|was|would|could|did)\b.{0,80}\b(?:would|could|might|['’]d)\b",
    r"^(?:angenommen|stell dir vor|nehmen wir an|sagen wir|mal angenommen|zum beispiel|theoretisch|gesetzt den fall)\b",
    r"^(?:wenn|falls|wäre|hätte)\b.{1,80}\b(?:würden?|wären?|hätten?|könnten?)\b|\b(?:wäre|würde|hätte)[nt]? ich\b",
)
TOLD = Phrases(
    r"\b(?:docs?|documentation|readme|manual|tutorial|article|book|guide|error(?: message)?|log|film|movie"
    r"|song|website|page|paper|stack ?overflow|wikipedia|quote|saying)\b.{0,30}\b(?:says?|said|states?|claims?|goes"
    r"|writes?|recommends?|suggests?)\b",
    r"^according to\b|\bin the (?:film|movie|novel i read|tutorial)\b|\bthere['’]s an old saying\b",
    r"\b(?:he|she|they|someone|somebody|\w+) (?:said|wrote|says|writes|claimed|claims)(?: that|:|,)? ?[\"“‘„]",
    r"\b(?:in|laut) (?:der|dem|dieser|diesem|den) (?:doku\w*|readme|handbuch|artikel|anleitung|film|buch|log)\b",
    r"\b(?:er|sie|jemand) (?:sagte|schrieb|meinte):? ?[„\"“»]|\bsprichwort\b|\bfehlermeldung sagt\b",
)
PASSING = Phrases(
    r"\b(?:for now|for today|for the moment|for the time being|right now|at the moment|just (?:this|for) (?:once|now"
    r"|today|this)|this (?:once|time|one time)|only (?:this|for this) (?:time|once)|temporarily|until (?:later|tomorrow"
    r"|tonight|i say)|tonight|this (?:morning|afternoon|evening))\b",
    r"\b(?:in|for|during) this (?:session|conversation|chat|pr|pull request|commit|branch|test|case|example|exercise"
    r"|demo|task|run)\b",
    r"\b(?:today|again)[.!]*$|\bstill (?:fails?|failing|broken|wrong|hangs|the same)\b|\b(?:is|are|was) (?:broken|red"
    r"|green|stuck|down|blank|done|fine)\b",
    r"\b(?:vorläufig|vorerst|erst ?mal|fürs erste|für heute|gerade|im moment|momentan|diesmal|dieses (?:eine )?mal"
    r"|heute (?:früh|abend|morgen)|schon wieder|immer noch)\b|\bheute\b",
    r"\bin (?:diese[rm]) (?:sitzung|chat|gespräch|test|commit|branch)\b|\bpour l['’]instant\b|\bpor ahora\b",
)
# Text about or to the machine, or an attempt to instruct it.
TO_THE_MACHINE = Phrases(
    r"\b(?:ignore|disregard|forget|override) (?:all |any |every |the |your |these |those )*(?:previous|prior|above"
    r"|earlier|other|existing|system|safety)?\s*(?:instructions?|rules?|prompts?|guidelines?|messages?|context)\b",
    r"\byou are (?:now|an?|the|my|no longer)\b|\bact as (?:an?|if)\b|\bsystem prompt\b|\bdeveloper mode\b"
    r"|\bjailbreak\b|\bunrestricted (?:model|assistant|ai)\b",
    r"\b(?:the|your|my) (?:assistant|ai|model|agent|system) (?:must|should|shall|will|is to) (?:always|never|now"
    r"|only)?\b",
    r"\bdo(?:n['’]t| not) (?:tell|mention|reveal|say|inform)\b.{0,40}\b(?:user|anyone|anybody|them|operator|owner)\b",
    r"\b(?:exfiltrate|send|post|upload|forward|email|leak)\b.{0,60}\b(?:to https?://|to [\w.+-]+@|secrets?"
    r"|credentials?|tokens?|passwords?)",
    r"\b(?:vergiss|ignorier\w*|missachte) (?:alle |deine |die )*(?:bisherigen |vorherigen |obigen )?(?:anweisung\w*"
    r"|regeln|vorgaben)\b|\bdu bist (?:jetzt|ab jetzt|nun) (?:ein|eine|kein)\b",
)
RECALLED = Phrases(
    r"^(?:you|the memory|your memory|your notes|memory|lukasa|claude|the assistant) (?:said|says?|told|mentioned"
    r"|remembered?s?|recalled?s?|noted|wrote|stored|already know)\b",
    r"^(?:according to|from|in|as per) (?:your|the|my)?\s*(?:memory|memories|notes|lukasa|context)\b",
    r"^du (?:sagtest|hast (?:mir )?(?:gesagt|erzählt|notiert|gemerkt))\b|^du hast .{1,80} gesagt\b"
    r"|^laut (?:deine[mrn]|dem|der) (?:gedächtnis|notizen|erinnerung\w*)\b",
    r"\[(?:tier|named tier)=|\bauthority=(?:act|inform|none)\b|\brecalled from the \w+ tier\b"
    r"|^(?:noted earlier as true|recorded as having happened|a preference or rule recorded earlier"
    r"|unverified text of unknown authorship)\b",
    r"^(?:score|relevance) \d\.\d+ =|\bmatched by (?:keyword|vector)\b|^conversation [0-9A-Za-z]{11}\b",
)
SECRET = Phrases(
    r"\[(?:secret|key)\b",
    r"\b(?:pass(?:word|phrase|code|wd)?|secret|api[ _-]?key|access[ _-]?key|private key|token|pin|credentials?|otp"
    r"|cvv|ssn|iban|card number|credit card)s?\b(?: \w+){0,6}\s*(?:is|are|=|:|was)\s",
    r"\b(?:passwort|kennwort|zugangscode|geheimzahl|schlüsselcode|pin)\b(?: \w+){0,6}\s*(?:ist|lautet|=|:|war)\s",
    r"\b(?:log ?in|sign ?in|authenticate|connect) (?:with|as|using) \S+\s*[/:]\s*\S+",
)
# Text that cleaning put in the place of something else: the sentence is no longer as it was said.
REPLACED = Phrases(r"\[(?:… |data\]|a listing of \d)|\[(?:email|phone|uuid|ip|url)\]")
# A rule, a correction, a name: it counts more than other statements.
WEIGHTY = Phrases(
    r"\b(?:always|never|must|mustn['’]t|from now on|from here on|going forward|in future|no exceptions|forbidden"
    r"|mandatory|not allowed|no longer|any ?more)\b",
    r"^(?:no|nope|wrong|actually|correction|sorry|that['’]s wrong|not quite)\b[,:. ]|, not \w|\bnot .{1,60} but\b",
    r"\bmy name is\b|\bcall me\b|\bmy pronouns\b|\ballerg",
    r"\b(?:immer|nie|niemals|muss|müssen|ab (?:jetzt|sofort)|in zukunft|künftig|verboten|nicht mehr|nenn mich)\b",
    r"^(?:nein|falsch|korrektur|doch|stimmt nicht)\b[,:. ]|, nicht \w|, sondern\b",
)
# Forms that lasting statements often have. The classifier weighs them; none of them decides.
_DAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?"
TASTE = Phrases(
    r"\bi(?: \w+ly| really| also)? (?:prefer|like|love|hate|dislike|enjoy|avoid|adore|can['’]t stand|don['’]t (?:like"
    r"|eat"
    r"|drink|want|use|own|watch))\b(?! (?:that|this|it|them|these|those|your|how|what|where|the)\b)",
    r"\bi(?:['’]d| would)(?: much)? rather\b|\bmy (?:favou?rite|preference)\b|\bi(?:['’]m"
    r"| am) (?:not )?(?:a (?:big )?fan|into)\b",
    r"\bich (?:mag|liebe|hasse|esse|trinke|bevorzuge|vertrage|nutze|benutze)\b(?! (?:das|dies\w*|dein\w*|es)\b)"
    r"|\bliebling\w*|\b(?:gern|lieber|am liebsten)\b",
)
DECIDED = Phrases(
    r"\b(?:we|i|the (?:team|board|client))(?: have| has|['’]ve)?(?: just| now| finally| also)? (?:decided|agreed"
    r"|settled"
    r"|chose|chosen|picked|voted|opted|switched|migrated|dropped|renamed|postponed|cancelled|approved)\b",
    r"\bdecision(?: is|:)|\bwas decided\b|\bwe(?:['’]re| are) (?:going with|switching|moving to|dropping"
    r"|sticking with)\b",
    r"\b(?:beschlossen|entschieden|geeinigt|vereinbart|verschoben|genehmigt|abgeschafft|eingestellt|festgelegt)\b",
)
OWN = Phrases(
    r"^(?:(?:and|also|btw|by the way|oh),? )?(?:my|our) (?:[\w'’-]+ ){1,4}(?:is|are|was|has|have|lives?|works?|wants?"
    r"|runs?"
    r"|uses?|needs?|starts?|ends?|costs?|comes?|goes|plays?|speaks?|closes?|opens?|likes?|prefers?|moved|joined"
    r"|left)\b",
    r"^(?:(?:und|übrigens|ach ja),? )?(?:mein|meine|unser|unsere) (?:[\w-]+ ){1,3}(?:ist|sind|war|hat|haben|heißt|wohnt"
    r"|lebt|arbeitet|will|läuft|braucht|kommt|spielt|steht|liegt)\b",
    r"^i(?:['’]m| am) (?:an?|the|allergic|from|based|left-handed|vegan|vegetarian|responsible)\b",
    r"^i (?:live|work|study|teach|speak|own|play|was born|grew up|moved|manage|lead|maintain|collect)\b",
    r"^ich (?:wohne|lebe|arbeite|studiere|unterrichte|spreche|spiele|leite|besitze|sammle|bin \d|habe \w+ (?:kinder"
    r"|jahre))\b",
)
REGULAR = Phrases(
    rf"\b(?:{_DAYS})\b|\b(?:every|each|daily|weekly|monthly|nightly|yearly|quarterly|usually|once a)\b"
    r"|\b(?:jede[nrsm]?|täglich|wöchentlich|monatlich|meistens)\b",
    r"\b\d{1,2}(?::\d\d| ?(?:am|pm|uhr))\b|\b\d{1,2}(?:st|nd|rd|th)\b|\b(?:january|february|march|april|june|july"
    r"|august"
    r"|september|october|november|december|januar|februar|märz|mai|juni|juli|oktober|dezember)\b|\b(?:19|20)\d\d\b",
)
ROLE = Phrases(
    r"\b(?:is|are|was|becomes) (?:my|our|the) (?:new |first |only |head of )?\w+\b|\b(?:owns|leads|runs|handles"
    r"|maintains|manages|reviews"
    r"|reports to|looks after|is responsible for|is in charge of|is called|is named|works (?:on|at|for|in|as)"
    r"|lives in)\b",
    r"\b(?:ist|bleibt|wird) (?:mein|meine|unser|unsere)\b|\b(?:leitet|heißt|zuständig|verantwortlich|kümmert sich"
    r"|betreut)\b",
)
PLACED = Phrases(
    r"\b(?:runs?|listens?|lives?|stored|hosted|kept|located|deployed|built|written|based|managed|sits?|served"
    r"|found) (?:on|in|at"
    r"|under|by|with|from|every|behind|inside)\b|\b(?:uses?|requires?|needs?|depends on|talks to|comes from|goes to"
    r"|belongs to"
    r"|connects to|expires?|supports?|defaults to)\b",
    r"\b(?:läuft|liegt|liegen|steht|stehen|gehört|gehören|braucht|brauchen|benutzt|benutzen|verwenden|verwendet|endet"
    r"|beginnt|startet"
    r"|dauert|kostet|schließt|öffnet)\b",
)
# A sentence that begins with one of these says "it" of something named before.
SUBJECTLESS = re.compile(
    r"(?:(?:and|but|so|also|und|aber|also)[\s,]+)?(?:it|its|it['’]s|he|she|they|them|their|his|her|these|those|this one"
    r"|that one|both|the former|the latter|er|sie|ihre?|seine?|dieser|diese|dieses|beide|dort|damit|daran|darauf|davon"
    r"|dafür|dazu|il|elle|ils|elles)\b"
    r"|(?:this|that|das|es|dies)\b\W+(?:is|was|runs?|uses?|lives?|belongs?|has|needs?|must|comes?|goes|works?"
    r"|ist|war|läuft|liegt|gehört|braucht|kommt|steht|heißt|muss)\b",
    re.IGNORECASE,
)
TASKS = frozenset(
    """add fix write create make run rerun update change remove delete rename move refactor implement check look find
    search read open show print list explain try revert undo redo continue proceed stop wait push commit merge rebase
    install build deploy debug investigate review generate convert replace insert append put set clean format summarise
    summarize translate draft send start restart finish give tell help rewrite simplify split extract copy paste compare
    sort compute calculate describe reply answer respond ignore pretend repeat click type select choose pick bump
    upgrade download upload export import apply enable disable turn skip book shorten order
    mach mache schreib schreibe zeig zeige füg füge lösch lösche öffne nimm setz setze benenn benenne prüf prüfe such
    suche erklär erkläre starte lass leg lege korrigiere ändere übersetz übersetze fass kürz kürze
    schau sieh versuch versuche teste installiere entferne formatiere vergleiche erstelle
    schick sende stell hol wiederhole rechne reserviere erzähl nenn""".split()
)
