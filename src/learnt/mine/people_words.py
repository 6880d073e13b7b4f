"""The words with which people state rules, in English, German, French and Spanish.

Each expression stands for one notion, with the words of each language on lines of their own. All of them are searched
in sentences of at most `MAX_SENTENCE` characters whose code and quotations are replaced by `x`, and ignore the case.
"""

from __future__ import annotations

import re

MAX_SENTENCE = 600


def any_of(*languages: str, at_start: bool = False) -> re.Pattern[str]:
    """Return an expression for whole words in any of these languages, perhaps only at the start of a text."""
    before = "" if at_start else r"(?<![\w-])"
    return re.compile(f"{before}(?:{'|'.join(languages)})(?![\\w-])", re.IGNORECASE)


# Interjections before a sentence, those with a sign behind them, and those that need none.
LEAD = re.compile(
    r"(?:(?:no|nope|nah|ok|okay|yes|yeah|yep|hm+|well|right|great|good|nice|perfect|cool|thanks|thank you|hey|hi|oh|"
    r"ah|again|sorry|actually|wait|one (?:more )?thing|another thing|fyi|important|(?:quick |side )?note|reminder|"
    r"careful|wrong|then|now|also|as i said|like i said|i repeat|for the record|nein|ja|gut|ach|übrigens|außerdem|"
    r"noch was|wichtig|achtung|danke|nochmal|falsch|wie gesagt|non|oui|au fait|aussi|attention|merci|d'accord|"
    r"s'il te pla[iî]t|s'il vous pla[iî]t|comme je l'ai dit|s[ií]|por cierto|además|vale|ojo|gracias|bueno|otra cosa|"
    r"como dije)\s*[,.:;!–—-]+\s*|(?:ok|okay|actually|please|pls|btw|by the way|also|and|but|so|just|then|bitte|und|"
    r"aber|also|stp|svp|et|mais|donc|y|pero|por favor|así que)[,:]?\s+)+",
    re.IGNORECASE,
)
# An adverbial before the subject, without a comma.
ADVERBIAL = re.compile(r"(?:for|in|on|with|inside|during) [^,:;?!]{2,60}? (?=(?:we|you) )", re.IGNORECASE)
# A side clause or an adverbial before the main clause.
SIDE_CLAUSE = re.compile(
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
    r"feature|bug|release|sprint|turn)|until (?:i|we|the|it|that)|before (?:you start|we start|i)|the last (?:change|"
    r"commit|edit|two)|(?:first|second|last|previous) (?:one|option|approach|version|commit|change)",
    r"diesmal|dieses mal|heute|vorerst|erst ?mal|fürs erste|im moment|noch nicht|momentan|(?:in|"
    r"für) diese[mnrs]? (?:pr|commit|branch|ticket|fall|test|funktion|änderung|aufgabe)",
    r"pour l['’]instant|pour le moment|cette fois(?:-ci)?|aujourd['’]hui|pas encore|(?:dans|pour) (?:ce|cette) (?:pr|"
    r"commit|branche|ticket|cas|test|fonction|tâche)",
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
FRAGMENT = re.compile(
    r"(?:always|never|every (?:single )?time|each time|no exceptions?|immer|nie(?:mals)?|jedes mal|ausnahmslos|"
    r"toujours|jamais|à chaque fois|sans exception|siempre|nunca|cada vez|sin excepción)(?:[.!,]|$| (?:for|in|with|"
    r"when|on|and|für|in|bei|wenn|pour|dans|para|en)\b)|.{0,80}, (?:always|every (?:single )?time|each time|immer|"
    r"jedes mal|toujours|à chaque fois|siempre|cada vez)[.!]*$",
    re.IGNORECASE,
)
# Points at what was said before: `stick to that`.
POINTS_BACK = re.compile(
    r"\b(?:stick (?:to|with)|follow|do|keep(?: to)?|use|apply|remember|mach|halte?|fais|haz) (?:that|this|it|those|"
    r"these|so|das|dich daran|comme ça|así|eso)\b|^(?:the )?same (?:goes|applies)\b|^(?:that|this|it) (?:goes|applies|"
    r"holds)\b|^(?:das|dasselbe) gilt\b|^(?:ça|cela|ceci) vaut\b|^(?:eso|lo mismo) vale\b",
    re.IGNORECASE,
)
# A request that has the form of a question or a wish.
REQUEST = re.compile(
    r"(?:can|could|would|will) you(?: please)?,? |i(?:['’]d| would) like you to |i (?:want|need) you to |"
    r"make sure (?:to |that you |you )|be sure to |(?:kannst|könntest|würdest) du(?: bitte)? |(?:peux|pourrais)-tu |"
    r"tu peux |¿?(?:puedes|podrías) ",
    re.IGNORECASE,
)
# What is done whenever something of a kind comes up: an indefinite thing, not the one of this task.
HABITUAL = re.compile(
    r"(?:when(?:ever)?|every time|each time|if) (?:you(?:['’]re)?|we|(?!\w*thing)\w+ing)\b(?: \S+){0,3}? (?:an?|any|"
    r"new|another|some|every|[\w.`-]{3,}s|sql)\b|(?:before|after) (?:each|every|"
    r"\w+ing\b(?: \S+){0,2}? [\w.`-]{3,}s)\b|^(?:for|in|with|on) (?!this|the|that|these|those|my|his|all|both|"
    r"most)(?:[\w-]+ ){0,2}[\w-]{3,}s[,:] |(?:wenn|bevor|sobald|falls) (?:du|wir|man)\b(?: \w+){0,2}? (?:eine?n?|"
    r"neue)\b|vor jede[mnr]\b|(?:quand|avant de|dès que) (?:tu|on|vous)?\b(?: \w+){0,3}? (?:une?|des)\b|"
    r"avant chaque\b|(?:cuando|antes de)\b(?: \w+){0,3}? una?\b|antes de cada\b",
    re.IGNORECASE,
)
CIRCUMSTANCE = any_of(
    r"before (?:each|every|any|you|\w+ing)|after (?:each|every|any|\w+ing)|when(?:ever)?(?: you)?|(?:each|every) time|"
    r"if you",
    r"bevor|wenn du|vor jede[mnr]|nach jede[mnr]|jedes mal",
    r"avant (?:chaque|de)|après chaque|quand tu|chaque fois",
    r"antes de|después de|cuando|cada vez",
)
# Stops what the agent keeps doing.
STOP = any_of(
    r"(?:stop|quit|no more) (?:\w+ly )?(?:\w+ing)(?! it\b| this\b[.!]?$)(?= \S)",
    r"hör(?:t)? (?:bitte )?(?:endlich )?auf|lass(?:t)? (?:bitte )?die finger von",
    r"(?:arrête[sz]?|cesse[sz]?) (?:de|d['’])(?=\w| \w)",
    r"(?:deja|dejad|deje|para) de",
    at_start=True,
)
ARRETE = re.compile(r"(?:arrête[sz]?|cesse[sz]?) d['’]", re.IGNORECASE)
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
    r"in der regel|per konvention|laut konvention|unsere (?:konvention|regel|richtlinie)\w* (?:ist|lautet|sagt)",
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
# Names the project, the team or the place as a whole.
PLACE = any_of(
    r"on (?:this|my|our|your) (?:machine|box|laptop|servers?|system|cluster|network|runners?|side)|in (?:this|our|"
    r"the) (?:\w+ )?(?:repo|repository|project|codebase|code base|monorepo|team|company|organi[sz]ation)|(?:on|for|"
    r"at) (?:this|our) (?:repo|repository|project|codebase|team|company)|(?:a|over )?(?:round )?here(?! is\b| are\b|"
    r"['’]s\b|:)|around here",
    r"in (?:diesem|unserem|dem) (?:repo|repository|projekt|code|team|unternehmen)|bei uns|hier(?! ist\b| sind\b)",
    r"dans (?:ce|notre) (?:projet|dépôt|repo|code|équipe)|chez nous|ici",
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
DO_NOT = re.compile(
    r"(?:don['’]?t|do not|please don['’]?t|avoid)(?: ever| just)? (?P<verb>[a-z'`]+)|(?P<abroad>il ne faut (?:pas|"
    r"plus)\b|man darf (?:\w+ )?(?:nicht|keine?n?)\b|no (?:hay que|se debe)\b|(?:\w+ )?(?:bitte )?(?:keine?n?|"
    r"nicht)\b|(?:ne |n['’])\w+ pas\b|pas de\b|no \w+[eé]?s\b)",
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
USE = re.compile(
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
REPORTED = re.compile(
    r"(?:the |our |my |a |der |die |das |le |la |el )?[\w.-]+(?: [\w.-]+){0,3}? (?:says?|said|wrote|claims?|claimed|"
    r"told (?:me|us)|suggests?|sagt|sagte|schrieb|meint|dit|a écrit|prétend|dice|dijo|escribió)\b|(?:according to|"
    r"laut|selon|d['’]après|según) ",
    re.IGNORECASE,
)
