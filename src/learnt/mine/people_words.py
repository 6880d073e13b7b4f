"""The words with which people state rules, in English, German, French and Spanish.

Each expression stands for one notion, with the words of each language on lines of their own. All of them are searched
in sentences of at most `MAX_SENTENCE` characters whose code and quotations are replaced by `x`, and ignore the case.
"""

from __future__ import annotations

import re

from learnt.text.patterns import lazy_pattern

MAX_SENTENCE = 600


def any_of(*languages: str, at_start: bool = False) -> re.Pattern[str]:
    """Return an expression for whole words in any of these languages, perhaps only at the start of a text."""
    before = "" if at_start else r"(?<![\w-])"
    return lazy_pattern(f"{before}(?:{'|'.join(languages)})(?![\\w-])", re.IGNORECASE)


# Interjections before a sentence, those with a sign behind them, and those that need none.
LEAD = lazy_pattern(
    r"(?:(?:(?:it|that|this)(?:['’]s| is| looks| works)?(?: fine| good| ok| okay| great| better| nice|"
    r" right)?(?: for now)?,? but|(?:looks|works)(?: good| great| fine| well)?,? but) |(?:no|nope|nah|ok|okay|yes|"
    r"yeah|yep|hm+|well|right|great|good|nice|perfect|cool|thanks|thank you|hey|hi|oh|ah|again|sorry|actually|wait|"
    r"one (?:more )?thing|another thing|fyi|important|(?:quick |side )?note|reminder|careful|wrong|then|now|also|"
    r"as i said|like i said|i repeat|for the record|nein|ja|gut|ach|übrigens|außerdem|noch was|wichtig|achtung|danke|"
    r"nochmal|falsch|wie gesagt|non|oui|au fait|aussi|attention|merci|d'accord|s'il te pla[iî]t|s'il vous pla[iî]t|"
    r"comme je l'ai dit|s[ií]|por cierto|además|vale|ojo|gracias|bueno|otra cosa|como dije)\s*[,.:;!–—-]+\s*|(?:ok|"
    r"okay|actually|generally|normally|usually|in general|by default|typically|please|pls|btw|by the way|also|and|but|"
    r"so|just|then|bitte|und|aber|also|stp|svp|et|mais|donc|y|pero|por favor|así que)[,:]?\s+)+",
    re.IGNORECASE,
)
# An adverbial before the subject, without a comma.
ADVERBIAL = lazy_pattern(r"(?:for|in|on|with|inside|during) [^,:;?!]{2,60}? (?=(?:we|you) )", re.IGNORECASE)
# A side clause or an adverbial before the main clause.
SIDE_CLAUSE = lazy_pattern(
    r"(?:when(?:ever)?|if|before|after|while|once|unless|until|for|in|on|at|with|as|because|since|every time|"
    r"each time|wenn|falls|bevor|nachdem|sobald|solange|weil|da|bei|beim|für|in|im|vor|nach|quand|lorsque|avant|après|"
    r"si|pour|dans|chaque fois|à chaque|cuando|antes|después|si|al|para|en|cada vez)\b[^,:?!]{2,120}[,:]\s+",
    re.IGNORECASE,
)
# Asks for something to be remembered.
MEMORY = any_of(
    r"remember(?! me\b| when\b| how\b| the time\b| back\b| all the\b| (?:(?:the|their|his|her|which) )?(?:last|"
    r"previous|selected|current|chosen|users?|window|position|choice)\b)|(?:keep|bear)(?: \w+)? in mind|(?:make|"
    r"take)(?: a)?(?: mental)? note|don['’]?t (?:you )?(?:ever )?forget|do not (?:ever )?forget|never forget|"
    r"notes? (?:for|to) (?:the |your )?(?:future|later|yourself|self)|memori[sz]e|(?:save|store|add|put|"
    r"write) (?:this|that|it) (?:down|(?:in|to|into) (?:your |the )?(?:memory|notes|learnings))",
    r"merke?t? (?:dir|euch)|merke(?= ?:)|(?:bitte )?merken|denke?t? (?:bitte )?(?:immer )?d(?:a)?ran|"
    r"vergiss (?:bitte )?(?:nicht|nie)|notiere? dir|behalte? (?:bitte )?im (?:kopf|hinterkopf|auge|gedächtnis)",
    r"retiens|retenez|souviens-toi|souvenez-vous|rappelle-toi|rappelez-vous|n['’]oublie[sz]? (?:pas|jamais)|"
    r"(?:garde[sz]?|gardez) (?:bien )?(?:en tête|à l['’]esprit|en mémoire)|mémorise[sz]?|note[sz]? bien|prends note",
    r"recu[eé]rda(?:lo|me)?|recuerde|recordad|acu[eé]rdate|no (?:te )?olvides|no olvid[eé]is|ten(?:ga|"
    r"ed)? (?:en cuenta|presente)|toma nota|apunta|memoriza",
    at_start=True,
)
# Says that something holds from now on.
STANDING = any_of(
    r"from now on(?:wards)?|from here on(?: out)?|going forwards?|moving forwards?|henceforth|in (?:the )?future|"
    r"for (?:all )?(?:your )?future (?:\w+ )?(?:work|tasks?|sessions?|changes|prs?|commits|reference|runs)|"
    r"for the future|(?:the )?next time(?: around)?|as of (?:now|today)|starting (?:now|today)|for (?:next time|"
    r"the next ones)",
    r"ab (?:jetzt|sofort|heute|nun)|von (?:nun|jetzt|heute) an|in zukunft|(?:zu)?künftig|für die zukunft|fortan|"
    r"(?:das |beim |fürs )?nächste[sn]? mal|für die nächsten",
    r"à partir de maintenant|à partir d['’]aujourd['’]hui|dès maintenant|dorénavant|désormais|à l['’]avenir|"
    r"dans le futur|la prochaine fois|pour (?:la suite|l['’]avenir|la prochaine fois)",
    r"a partir de (?:ahora|hoy)|(?:de|desde) (?:ahora|hoy|aqu[ií])(?: en adelante)?|en adelante|en (?:el |"
    r"lo )?(?:futuro|sucesivo)|la pr[oó]xima vez|para la pr[oó]xima|para el futuro",
)
# Says that something holds for this task only, even if it is asked to be remembered.
THIS_TASK = any_of(
    r"for now|this time|(?:in|for|on|with) this (?:[\w.-]+ )?(?:deployment|pr|mr|pull request|commit|change|branch|"
    r"session|conversation|ticket|task|step|one|fix|feature|release|sprint)|diesmal|cette fois|esta vez"
)
# Says that the future is uncertain.
PERHAPS = any_of(
    r"might|could|may|maybe|perhaps|would|plan(?:ning)? to|(?:we|i)['’]?(?:ll| will)|thinking of",
    r"will (?:be|have)|könnten?|vielleicht|eventuell|würden?|wollen wir",
    r"pourrait|pourrions|peut-être|on va|allons",
    r"podr[ií]a\w*|quiz[aá]s?|tal vez|vamos a",
)
# Says that something holds this time only.
ONE_OFF = any_of(
    r"for now|right now|this time|(?:just )?this once|for the (?:moment|time being)|at the moment|today|tonight|"
    r"tomorrow|yet|currently|(?:in|for|on|with) this (?:[\w.-]+ )?(?:deployment|pr|mr|pull request|commit|change|"
    r"branch|session|conversation|function|test|case|ticket|issue|task|step|round|patch|diff|iteration|one|fix|"
    r"feature|bug|release|sprint|turn|form|page|screen|window|view|dialog)|(?:just|only) (?:a|an) (?:spike|prototype|"
    r"experiment|poc|draft|demo)|until (?:i|we|the|it|that)|before (?:you start|we start|i)|the last (?:change|commit|"
    r"edit|two)|(?:first|second|last|previous) (?:one|option|approach|version|commit|change)|"
    r"(?:revert|undo) (?:it|that|this|them)|wait for me",
    r"diesmal|dieses mal|heute|vorerst|erst ?mal|fürs erste|im moment|noch nicht|momentan|(?:in|"
    r"für) diese[mnrs]? (?:pr|commit|branch|ticket|fall|test|funktion|änderung|aufgabe)",
    r"pour l['’]instant|pour le moment|cette fois(?:-ci)?|aujourd['’]hui|pas encore|(?:dans|pour) (?:ce|cette) (?:pr|"
    r"commit|branche|ticket|cas|test|fonction|tâche|formulaire|page|fenêtre|vue)",
    r"por ahora|de momento|esta vez|hoy|todav[ií]a no|aún no|(?:en|para) est[ea] (?:pr|commit|rama|ticket|caso|tarea)",
)
# Forbids or demands something without exception, in other languages than English.
UNIVERSAL_ABROAD = any_of(
    r"(?<!noch )nie(?:mals)?(?: wieder| mehr)?|(?<!wie )immer(?! noch\b)|stets|grundsätzlich|prinzipiell|ausnahmslos|"
    r"auf keinen fall|unter keinen umständen|generell",
    r"jamais|(?<!comme )toujours(?! pas\b)|systématiquement|en aucun cas|sous aucun prétexte",
    r"nunca|jamás|(?<!como )siempre|en ningún caso|bajo ningún (?:concepto|pretexto|motivo)",
)
UNIVERSAL = any_of(
    r"always|never|under (?:no|any) circumstances|without exception|at no point|every (?:single )?time|each time|"
    r"whenever|consistently|strictly",
)
# Makes a prohibition one of all cases.
NO_LONGER = any_of(
    r"ever(?! since)|again|any ?more|under any circumstances|every (?:single )?time|each time|anywhere|not here|"
    r"elsewhere|in general|nie wieder|nie mehr|nirgends|plus jamais|nulle part|nunca más|en ninguna parte"
)
# A fragment that makes the order before it one for all cases: `Always.`, `every time`.
FRAGMENT = lazy_pattern(
    r"(?:always|never|every (?:single )?time|each time|no exceptions?|immer|nie(?:mals)?|jedes mal|ausnahmslos|"
    r"toujours|jamais|à chaque fois|sans exception|siempre|nunca|cada vez|sin excepción)(?:[.!,]|$| (?:for|in|with|"
    r"when|on|and|für|in|bei|wenn|pour|dans|para|en)\b)|.{0,80}, (?:always|every (?:single )?time|each time|immer|"
    r"jedes mal|toujours|à chaque fois|siempre|cada vez)[.!]*$",
    re.IGNORECASE,
)
# Points at what was said before: `stick to that`.
POINTS_BACK = lazy_pattern(
    r"\b(?:stick (?:to|with)|follow|do|keep(?: to)?|use|apply|remember|mach|halte?|fais|haz) (?:that|this|it|those|"
    r"these|so|das|dich daran|comme ça|así|eso)\b|^(?:the )?same (?:goes|applies)\b|^(?:that|this|it) (?:goes|applies|"
    r"holds)\b|^(?:das|dasselbe) gilt\b|^(?:ça|cela|ceci) vaut\b|^(?:eso|lo mismo) vale\b",
    re.IGNORECASE,
)
# A request that has the form of a question or a wish.
REQUEST = lazy_pattern(
    r"(?:can|could|would|will) you(?: please)?,? |i(?:['’]d| would) like you to |i (?:want|need) you to |"
    r"make sure (?:to |that you |you )|be sure to |can we (?:please )?agree (?:that |to |on )|let['’]s agree (?:that |"
    r"to )|(?:kannst|könntest|würdest) du(?: bitte)? |(?:peux|pourrais)-tu |tu peux |¿?(?:puedes|podrías) ",
    re.IGNORECASE,
)
# What is done whenever something of a kind comes up: an indefinite thing, not the one of this task.
HABITUAL = lazy_pattern(
    r"(?:when(?:ever)?|if) (?:an?|any) (?:\w+ )?(?:test|migration|function|file|module|class|component|endpoint|query|"
    r"commit|branch|dependency|build|type|handler|script|table|column|secret|flag|change|error)\b|(?:when(?:ever)?|"
    r"every time|each time|if) (?:you(?:['’]re)?|we|(?!\w*thing)\w+ing)\b(?: \S+){0,3}? (?:an?|any|new|another|some|"
    r"every|[\w.`-]{3,}s|sql)\b|(?:before|after) (?:each|every|\w+ing\b(?: \S+){0,2}? [\w.`-]{3,}s)\b|^(?:for|in|with|"
    r"on) (?!this|the|that|these|those|my|his|all|both|most)(?:[\w-]+ ){0,2}[\w-]{3,}s[,:] |(?:wenn|bevor|sobald|"
    r"falls) (?:du|wir|man)\b(?: \w+){0,2}? (?:eine?n?|neue)\b|vor jede[mnr]\b|(?:quand|avant de|dès que) (?:tu|on|"
    r"vous)?\b(?: \w+){0,3}? (?:une?|des)\b|avant chaque\b|(?:cuando|antes de)\b(?: \w+){0,3}? una?\b|antes de cada\b",
    re.IGNORECASE,
)
# A condition of the product: `if the file is missing, …`.
OF_PRODUCT = lazy_pattern(
    r"(?:if|when|while|once|after|wenn|falls|sobald|si|quand|cuando) (?:(?:the|an?|there|it|they|this|user|users|"
    r"i)\b(?! (?:\w+ )?(?:build|tests?|ci|pipeline|linter|lint|migrations?|merge|rebase|type ?check\w*|suite|"
    r"compiler)\b)|(?:der|die|das|ein|eine)\b(?! (?:\w+ )?(?:build|tests?|pipeline|linter|migration)\b)|(?:le|la|les|"
    r"l['’]|un|une)\b|(?:el|los|las|una)\b)",
    re.IGNORECASE,
)
CIRCUMSTANCE = any_of(
    r"before (?:each|every|any|you|\w+ing)|after (?:each|every|any|\w+ing)|when(?:ever)?(?: you)?|(?:each|every) time|"
    r"if you",
    r"bevor|wenn du|vor jede[mnr]|nach jede[mnr]|jedes mal",
    r"avant (?:chaque|de)|après chaque|quand tu|chaque fois",
    r"antes de|después de|cuando|cada vez",
)
# The subject of the main clause is neither the agent nor the team.
THIRD_PERSON = any_of(
    r"the|an?|this|that|these|those|it|its|it['’]s|he|she|they|there|my|his|her|their|users?|customers?|people|some|"
    r"most|many|i|i['’]\w+|someone|something|everything",
    r"der|die|das|den|dem|des|ein|eine[rmns]?|dies\w*|jene\w*|es|er|sie|ich|mein\w*|jemand|alles|da|nutzer|kunden",
    r"le|la|les|un|une|ce|cet|cette|ces|ça|cela|c['’]est|il|elles?|ils|je|mon|ma|mes|tout",
    r"el|los|las|una|est[eao]s?|es[eao]s?|él|ella|ellos|yo|mis?|todo",
    at_start=True,
)
ELIDED_THIRD_PERSON = lazy_pattern(r"[lj]['’]\w|c['’]était", re.IGNORECASE)
IMPERSONAL = any_of(
    r"man (?:darf|soll(?:te)?|muss|macht|verwendet|nimmt)",
    r"il (?:ne )?faut|on (?:ne )?(?:doit|peut)",
    r"hay que|no hay que|no se (?:debe|puede|usa|toca|hace)",
    at_start=True,
)
GERMAN_MODAL = any_of(
    r"darf|dürfen|soll(?:en|te|ten)?|muss|müssen|kann|können|wird|werden|hat|haben|ist|sind|war|lässt"
)
INFINITIVE_LAST = lazy_pattern(r"\b[a-zäöü]\w+(?:en|ern|eln)[.!]*$")
# Words behind `always` and `never` that make no order.
NO_ORDER = frozenset(
    "mind been seen had got gotten heard worked happened was were is are a an the on in at of to there this that it i "
    "we you they he she quite really before again".split()
)
# What people complain about, rather than a rule.
MISHAP = any_of(
    r"get|gets|got|see|sees|saw|have|has|had|hit|lose|end up|run into|fails?|crash(?:es)?|receives?|wait|happens?|"
    r"know|understand|remember|think|care|hear|finish(?:ed)?|managed?",
    r"noch|nur \d+|das gleiche|derselbe|fehl|ab|schief",
    r"en panne|la même|le même|une erreur",
    r"sale|aparece|falla|da|lo mismo|el mismo|la misma",
)
# Stops what the agent keeps doing.
STOP = any_of(
    r"(?:stop|quit|no more) (?:\w+ly )?(?:\w+ing)(?! it\b| this\b[.!]?$)(?= \S)",
    r"hör(?:t)? (?:bitte )?(?:endlich )?auf|lass(?:t)? (?:bitte )?die finger von",
    r"(?:arrête[sz]?|cesse[sz]?) (?:de|d['’])(?=\w| \w)",
    r"(?:deja|dejad|deje|para) de",
    at_start=True,
)
ARRETE = lazy_pattern(r"(?:arrête[sz]?|cesse[sz]?) d['’]", re.IGNORECASE)
FORBIDDEN = any_of(
    r"(?:is|are|stays?|remains?)(?: strictly| absolutely| completely)? (?:forbidden|prohibited|banned|disallowed|"
    r"verboten|off[- ]limits|taboo|a no-go|no-gos?)",
    r"(?:ist|sind|bleibt|bleiben)(?: streng| absolut)?(?: \w+)? (?:verboten|tabu|untersagt)",
    r"(?:est|sont)(?: strictement)? (?:interdite?s?|proscrite?s?)",
    r"(?:está|están|queda|quedan)(?: estrictamente)? prohibid[oa]s?",
)
NOBODY = any_of(
    r"(?:nobody|no one|no-one) (?:may|must|should|can|is allowed|(?:touch|push|merge|edit|deploy|commit|chang|releas|"
    r"delet|write|writ|rebas|modif|bypass|skip)(?:e?s|ies))",
    r"niemand (?:darf|pusht|merged?t?|ändert|deployt|fasst)",
    r"personne ne (?:doit|peut|touche|pousse|modifie)",
    r"nadie (?:debe|puede|toca|sube|modifica)",
    at_start=True,
)
POLICY = any_of(
    r"as a (?:general )?rule|as a matter of (?:policy|principle)|by convention|house rule|(?:our|the|"
    r"a) (?:\w+ )?(?:convention|policy|rule|standard|style guide|guideline|practice|agreement)s?(?: here)?(?: (?:for|"
    r"on|about|with) [\w ]{2,40})? (?:is|are|says?|demands?|requires?)|(?:rule|convention|policy) (?:here|"
    r"in this \w+)",
    r"gilt (?:bei uns|hier)|(?:bei uns|hier) gilt|in der regel|per konvention|laut konvention|unsere (?:konvention|"
    r"regel|richtlinie)\w* (?:ist|lautet|sagt)",
    r"par convention|en règle générale|notre (?:convention|règle|politique) (?:est|c['’]est)",
    r"por (?:convención|norma|regla general)|nuestra (?:convención|norma|regla|política) es",
)
# Says that something is settled, or is to become a habit.
AGREED = any_of(
    r"(?:we|as) (?:all )?agreed|agreed (?:on|to)|let['’]?s agree|habit|on (?:principle|purpose)|by design|policy|"
    r"convention|our (?:style|standard|rule)s?|(?:house|our|the) style(?: guide)?",
    r"vereinbart|abgemacht|abgesprochen|absichtlich|mit absicht|gewohnheit",
    r"convenu|d['’]un commun accord|exprès|par principe|habitude",
    r"acordado|a propósito|por principio|costumbre",
)
# Says that something holds for all of a kind.
QUANTIFIER = any_of(
    r"all|every|each|any|only|anywhere|everywhere|whole|throughout|without asking",
    r"alle[nrs]?|jede[nmrs]?|nur|überall|ausschließlich",
    r"tous|toutes|chaque|seulement|partout|uniquement",
    r"todos|todas|cada|sol[oa]mente|solo|sólo|únicamente",
)
# Reminds the agent of what was said before.
I_SAID = lazy_pattern(
    r"i (?:already |have |just )?(?:said|told you)(?: before| already| yesterday)?(?: that| to)?[,:]? |ich (?:sagte|"
    r"habe) (?:doch )?(?:schon )?(?:gesagt,? )?(?:dass )?|je t['’]ai dit (?:que |de )?|te (?:he dicho|dije) (?:que )?",
    re.IGNORECASE,
)
# How things are done or kept, as opposed to how they look at the moment.
NORM = any_of(
    r"belongs?|lives?|comes? from|go(?:es)? (?:in|into|through|to|under|next)|stays?|comes? (?:in|as)|(?:is|"
    r"are) (?:append-only|read-only|write-only|generated|shared|reserved|frozen|immutable|owned|stored|kept|written|"
    r"defined|named|called|singular|plural|synced|managed|not yours|ours|public|private)|read as|starts? with|"
    r"ends? with",
    r"gehör(?:t|en)|komm(?:t|en)|lieg(?:t|en)|steh(?:t|en)|wird|werden|heiß(?:t|en)",
    r"va|vont|vient|viennent|reste|restent|doit|doivent",
    r"va|van|viene|vienen|vive|viven|queda|quedan|debe|deben",
)
# An announcement of a rule before a colon.
HEADED = lazy_pattern(
    r"(?P<head>[^:.]{3,80}?): (?P<rest>\S.+)",
)
ANNOUNCES_RULE = any_of(
    r"rules?|convention|policy|principle|agree|agreement|habit|regel|konvention|règle|convention|regla|norma|convención"
)
ANNOUNCES_MEMORY = any_of(
    r"for (?:later|next time|the record|the future)|so you know|to remember|zum merken|für später|pour plus tard|"
    r"à retenir|para (?:luego|después|recordar)"
)
ANNOUNCES = any_of(
    r"let me be clear|to be clear|as (?:usual|always)|wie immer|comme d['’]habitude|como siempre|(?:keep|already|"
    r"have) (?:telling|told|said)|told you|one (?:more )?thing|another thing|heads[- ]up|fyi|important|careful|"
    r"be aware|i repeat|once more|wie gesagt|noch eins|wichtig|achtung|je répète|attention|importante|ojo|te lo repito"
)
# Verbs of what a product does for its users.
PRODUCT_VERBS = frozenset(
    "show display focus redirect hide highlight expand collapse scroll render select notify disable enable animate "
    "load reload refresh play center align zoom fade preselect sort paginate appear".split()
)
TROUBLE = any_of(
    r"bugs?|issues?|problems?|errors?|questions?|fehler|frage|problème|erreur|problema|pregunta|todo|note|example|"
    r"result|output"
)
# Names the project, the team or the place as a whole.
PLACE = any_of(
    r"on (?:this|my|our|your) (?:machine|box|laptop|servers?|system|cluster|network|runners?|side)|in (?:this|our|"
    r"the) (?:\w+ )?(?:repo|repository|project|codebase|code base|monorepo|team|company|organi[sz]ation)|(?:on|for|"
    r"at) (?:this|our) (?:repo|repository|project|codebase|team|company)|(?:a|over )?(?:round )?here(?! is\b| are\b|"
    r"['’]s\b|:)|around here",
    r"in (?:diesem|unserem|dem) (?:repo|repository|projekt|code|team|unternehmen)|bei uns|hier(?! ist\b| sind\b)",
    r"in unseren \w+|dans nos \w+|en nuestr[oa]s \w+|in (?:all )?our \w+|dans (?:ce|notre) (?:projet|dépôt|repo|code|"
    r"équipe)|chez nous|ici",
    r"en (?:este|nuestro) (?:proyecto|repo|repositorio|equipo|código)|aquí",
)
# The team as the subject.
WE = any_of(
    r"we|our team|the team",
    r"wir|(?:(?!wenn|weil|dass|ob|was|wie)[\w-]+ ){1,4}?\w+en wir",
    r"on(?= (?:n['’]|ne |a |utilise|fait|met|écrit|passe|préfère|teste|garde|nomme|appelle|code|range|stocke|lance))|"
    r"nous",
    r"(?:nosotros )?(?:siempre |nunca |no |solo |sólo |ya )?\w{2,}(?:amos|emos|imos)",
    at_start=True,
)
WE_ALWAYS = lazy_pattern(
    r"(?:we|our team|the team)(?: also| all)? (?:always|never|only|strictly|consistently|generally|usually|normally|"
    r"typically) (?P<verb>[a-z']+)",
    re.IGNORECASE,
)
WE_DO_NOT = lazy_pattern(
    r"(?:we|our team|the team) (?:don['’]?t|do not|no longer|avoid|forbid)(?: ever)?(?: really)? (?P<verb>[a-z'`]+)|"
    r"on (?:ne |n['’])(?P<fr>\w+) (?:pas|plus|jamais)|nous ne (?P<nous>\w+) (?:pas|plus)|(?:nosotros )?(?:no|"
    r"nunca) (?P<es>\w+(?:amos|emos|imos))|wir \w+ (?:hier |dafür )?(?:keine?n?|nicht|nie) (?P<de>\w+)",
    re.IGNORECASE,
)
CUSTOM_VERBS = any_of(
    r"use|do(?! (?:need|have|want|see|get)\b)|write|keep|name|call|prefer|store|put|run|test|deploy|ship|follow|go|"
    r"log|format|say|spell|version|tag|merge|squash|commit|branch|pin|import|export|inject|mock|wrap|throw|return|"
    r"sort|document|indent|review|release|generate|build|have (?:no|a (?:rule|convention|policy))|stick|number|track|"
    r"avoid|forbid|mark|separate|share|handle|validate"
)
WE_AGREED = lazy_pattern(
    r"(?:we|the team)(?:['’]ve| have)? (?:agreed|decided|standardi[sz]ed|settled|switched|moved|migrated)\b(?: (?:to|"
    r"on|not))",
    re.IGNORECASE,
)
NO_RULE_VERBS = frozenset(
    "know see understand need get care think remember support have want got plan seem mind worry expect".split()
)
YOU_MUST = lazy_pattern(
    r"(?:everything|anything|whatever|all) you \w+ (?:must|should|has to|have to|needs? to|goes?)\b|you(?:['’]re|"
    r" are)? (?:must|should|shall|may|can|have to|need to|ought to|to|supposed to) (?:always|never)\b|"
    r"you (?:must(?: not|n['’]?t)|may not|are not (?:allowed|supposed) to|cannot|can['’]?t) |du (?:darfst|sollst|"
    r"musst) (?:\w+ )?(?:nie(?:mals)?|immer|nicht)|tu (?:ne )?(?:dois|peux) (?:jamais|toujours|pas)|(?:no )?(?:debes|"
    r"puedes) (?:siempre|nunca)|(?:siempre|nunca) debes",
    re.IGNORECASE,
)
I_WANT = lazy_pattern(
    r"i (?:don['’]?t|do not) (?:want|like|need) (?:any |more |new )*(?!the|this|that|these|it|to|an?|your|"
    r"his)(?:[\w-]+ ){0,2}?[\w-]{2,}s\b|i (?:never|don['’]?t ever|do not ever) want\b|i (?:don['’]?t|"
    r"do not) want (?:you to|to see)\b|i(?:['’]d| would)? (?:want|like|need|expect|"
    r"insist)(?: that)? (?:you to (?:always|never)|every|all|each|no)\b|ich will (?:nie|keine?n?|immer)\b|"
    r"je ne veux (?:plus|pas|jamais)\b|no quiero (?:ver |que )",
    re.IGNORECASE,
)
DO_NOT = lazy_pattern(
    r"(?:don['’]?t|do not|please don['’]?t|avoid)(?: ever| just)? (?P<verb>[a-z'`]+)|(?P<abroad>il ne faut (?:pas|"
    r"plus)\b|man darf (?:\w+ )?(?:nicht|keine?n?)\b|no (?:hay que|se debe)\b|(?:\w+ )?(?:bitte )?(?:keine?n?|"
    r"nicht)\b|(?:ne |n['’])\w+ pas\b|pas de\b|no \w+[eé]?s\b)",
    re.IGNORECASE,
)
NO_PROHIBITION = frozenset(
    "we you i they worry bother hesitate think know care mind get see understand like believe want need panic forget "
    "have be expect remember wait".split()
)
# A reason behind a comma or the like, in the same sentence.
REASON = lazy_pattern(
    r"\b(?:because|since|otherwise|or else|so that|as (?:it|they|that|we|those|these|there)|weil|denn|sonst|ansonsten|"
    r"da (?:es|sie|das|wir|die|der)|damit|parce qu|car\b|sinon|puisqu|vu que|porque|ya que|si no|pues|puesto que)|"
    r"(?:,| -| –| —|;|:)\s*(?:it|they|that|those|these|we|there|the|our|you['’]ll|you will|it['’]ll|its|that['’]s|"
    r"they['’]re|it['’]s|we['’]re|we['’]ve|there['’]s|everything|nothing|only|i (?:want|need|like|prefer|find|hate|"
    r"can['’]?t|don['’]?t)|es|sie|das|die|der|wir|dort|unser\w*|notre|nos|nuestr[oa]s?|on|il|elle|ça|c['’]est|ils|"
    r"elles|nous|es|son|se|eso|está|están|tenemos|lo|la|las|los)\b",
    re.IGNORECASE,
)
# How a sentence begins that gives the reason or the remedy of the one before it.
GOES_ON = any_of(
    r"it|it['’]s|it['’]ll|they|they['’]re|that|that['’]s|this|those|these|there|he|she|because|since|otherwise|else|"
    r"the reason|instead|rather|so|which|always use|use|call|run|put|prefer|just|ask|only|we have|we use|we['’]ve|"
    r"we already|our|its|everything|both|same|in particular|for example|e\.g|i\.e|exceptions?|unless|except|if|then|"
    r"don['’]?t|do not|you['’]ll|you will|last time|i['’]ve|i had|we lost|we had|we got",
    r"es|sie|das|die|dies|sonst|ansonsten|weil|denn|nimm|nutze|verwende|benutze|stattdessen|lieber|wir haben|dort|"
    r"dann|der grund|nur|außer|wenn|falls|beim letzten mal",
    r"il|ils|elles?|ça|cela|c['’]est|sinon|car|parce|utilise|utilisez|plutôt|à la place|on a|nous avons|la raison|"
    r"sauf|si",
    r"es|son|eso|esto|si|porque|usa|utiliza|mejor|en su lugar|tenemos|la razón|salvo|excepto|está|están",
    at_start=True,
)
# An order to use something; what follows is used, unless an article makes it one thing of this task.
USE = lazy_pattern(
    r"(?:please )?(?:use|prefer|take|pick|stick (?:to|with)|go with|run|call|write|import|name|spell|say|nimm|nutze?|"
    r"verwende?|benutze?|schreibe?|rufe?|bevorzuge?|utilise[sz]?|prends|préfère[sz]?|écris|lance[sz]?|usa|utiliza|"
    r"prefiere|escribe|ejecuta|llama)(?: hier| ici| aquí| here)? (?P<what>\S+)",
    re.IGNORECASE,
)
WHY_DID_YOU = any_of(
    r"why (?:did|do|are|would|have|were) you|why (?:is|are|the|this|not|would)|who told you|what['’]s with|again\?|"
    r"since when",
    r"warum (?:hast|machst|benutzt|verwendest|nimmst)|wieso",
    r"pourquoi (?:as-tu|tu as|avez|utilise)",
    r"por qué (?:has|usaste|usas|instalaste|pusiste)",
    at_start=True,
)
QUESTION = any_of(
    r"why|what|how|who|where|which|can (?:you|we|i)|could (?:you|we|i)|would (?:you|it)|should (?:we|i|it)|do (?:you|"
    r"we|i|they)|does|did|is (?:it|there|this|that)|are (?:you|we|there|they)|will|shall|have you|any idea|explain|"
    r"tell me|i wonder|show me|describe|investigate|find out",
    r"warum|wieso|weshalb|was|wie|wer|wo|kannst du|könntest|soll(?:en|te)? (?:ich|wir)|weißt du|erinnerst|erkläre?|"
    r"zeige?",
    r"pourquoi|comment|que|qu['’]est|quel(?:le)?s?|où|peux-tu|pouvez|est-ce|tu te souviens|explique|montre|sais-tu",
    r"por qué|cómo|qué|quién|dónde|puedes|podrías|recuerdas|explica|sabes",
    at_start=True,
)
# The products of development, about which a statement is a rule of the project and not a feature.
ARTEFACT = (
    r"(?:unit |integration |e2e |end-to-end |regression |snapshot )?tests?|specs?|fixtures?|mocks?|commits?|"
    r"branch(?:es)?|prs?|pull requests?|merge requests?|migrations?|schema changes?|files?|folders?|director(?:y|ies)|"
    r"modules?|packages?|imports?|exports?|functions?|methods?|classes|class|variables?|constants?|types?|interfaces?|"
    r"components?|handlers?|controllers?|services?|repositor(?:y|ies)|models?|views?|hooks?|endpoints?|routes?|"
    r"resolvers?|quer(?:y|ies)|database access|sql|logs?|log messages?|loggers?|exceptions?|errors?|dependenc(?:y|"
    r"ies)|librar(?:y|ies)|versions?|configs?|configuration|secrets?|credentials?|env(?:ironment)? vars?|"
    r"environment variables?|scripts?|builds?|releases?|changelogs?|docs?|documentation|comments?|docstrings?|todos?|"
    r"feature flags?|flags?|ci|pipelines?|deploys?|deployments?|dockerfiles?|containers?|images?|workflows?|jobs?|"
    r"names?|identifiers?|strings?|translations?|dates?|texts?|labels?|keys?|urls?|paths?|timestamps?|prices?|"
    r"amounts?|ids?|tables?|columns?|index(?:es)?|enums?|styles?|stylesheets?|css|icons?|assets?|changes?|code|"
    r"reviews?|tickets?|todo comments?|side effects?|globals?|singletons?|macros?|annotations?|warnings?"
)
GENERIC = lazy_pattern(
    rf"(?:all|every(?! \d)|each|any|no|only|new|public|private|internal|"
    rf"generated)\b(?: [\w`-]+){{0,3}}? (?:{ARTEFACT})\b|(?:[\w`-]+ ){{0,3}}?(?:{ARTEFACT})\b(?<=s)",
    re.IGNORECASE,
)
GENERIC_ABROAD = lazy_pattern(
    r"(?:alle|jede[rs]?|neue|keine?)\b(?: [\w`-]+){0,2}? (?:[\w-]*tests?|migration(?:en)?|commits?|branche?s?|"
    r"datei(?:en)?|funktion(?:en)?|klassen?|module?|[\w-]*endpunkte?|endpoints?|variablen?|konstanten?|"
    r"änderung(?:en)?|abhängigkeit(?:en)?)\b|(?:tous|toutes|chaque|aucune?)\b(?: les)?(?: [\w`-]+){0,2}? (?:tests?|"
    r"migrations?|commits?|branches?|fichiers?|fonctions?|classes|modules?|endpoints?|variables?|modifications?|"
    r"dépendances?|composants?)\b|(?:todos|todas|cada|ningún|ninguna)\b(?: los| las)?(?: [\w`-]+){0,2}? (?:tests?|"
    r"pruebas?|migraci(?:ón|ones)|commits?|ramas?|archivos?|ficheros?|funci(?:ón|ones)|clases?|módulos?|endpoints?|"
    r"variables?|cambios?|dependencias?|componentes?)\b",
    re.IGNORECASE,
)
DEMANDS = any_of(
    r"must|should|shall|has to|have to|needs?(?: to)?|gets?|goes?|go|lives?|belongs?|may only|can only|cannot|"
    r"can['’]?t|may not|stays?|are always|is always|always|never|are only|is only|require|requires",
)
STRONG_DEMAND = any_of(r"must|never|always|has to|have to|may only|only|cannot|may not|shall")
PASSIVE = lazy_pattern(
    r"(?:it|they|those|these) (?:must|should|may) (?:never|not) be (?:edited|changed|modified|touched) (?:by hand|"
    r"manually|directly)|"
    rf"(?:the |our )?(?:[\w`-]+ ){{0,3}}?(?:{ARTEFACT})\b(?: [\w`-]+){{0,4}}? (?:must|should|may|can)(?: never| not|"
    rf" always| "
    r"only)+ be (?:mocked|committed|edited|changed|run|imported|used|merged|pushed|deployed|modified|touched|renamed|"
    r"hard-?coded|logged|deleted|removed|written|called|accessed|reviewed|squashed|rebased|checked)",
    re.IGNORECASE,
)
BAN = lazy_pattern(
    r"no (?!need|idea|problem|worries|one|longer|wonder|way|rush|doubt|thanks|reason|matter|change|such|luck|man|"
    r"tests? for)(?:more )?(?:than )?(?:[\w`.-]+ ){1,5}?(?:in|from|without|outside|inside|please|anywhere|under|"
    r"unless)\b|no more [\w`-]+ \w|no (?:[\w`.-]+ ){0,2}[\w`-]{3,}s[.!]*$|keine?n? [\w`-]+ (?:in|im|ohne|bitte|"
    r"mehr)\b|(?:plus|pas) (?:de |d['’])[\w`-]+ (?:dans|sans|en|ici)\b|nada de \w|sin \w+ en\b",
    re.IGNORECASE,
)
# Bans things of a kind where it is said of the project.
NONE_HERE = lazy_pattern(
    r"(?:there (?:is|are) no|(?:es )?gibt (?:es )?(?:hier )?keine?n?|il n['’]y a pas d['’e]|no hay) ?\w", re.IGNORECASE
)
REPORTED = lazy_pattern(
    r"(?!i\b|we\b|you\b)(?:the |our |my |a |der |die |das |le |la |el )?[\w.-]+(?: [\w.-]+){0,3}? (?:says?|said|wrote|"
    r"claims?|claimed|told (?:me|us)|suggests?|sagt|sagte|schrieb|meint|dit|a écrit|prétend|dice|dijo|escribió)\b|"
    r"(?:according to|laut|selon|d['’]après|según) ",
    re.IGNORECASE,
)
