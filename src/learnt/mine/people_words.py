"""The words with which people state rules, in English, German, French and Spanish.

Each expression stands for one notion, with the words of each language on lines of their own. All of them are searched
in sentences of at most `MAX_SENTENCE` characters whose code and quotations are replaced by `x`, and ignore the case.
"""

from __future__ import annotations

import re

MAX_SENTENCE = 600


def _any(*languages: str, at_start: bool = False) -> re.Pattern[str]:
    """Return an expression for whole words in any of these languages, perhaps only at the start of a text."""
    before = "" if at_start else r"(?<![\w-])"
    return re.compile(f"{before}(?:{'|'.join(languages)})(?![\\w-])", re.IGNORECASE)


# Interjections before a sentence, those with a sign behind them, and those that need none.
LEAD = re.compile(
    r"(?:(?:no|nope|nah|ok|okay|yes|yeah|yep|hm+|well|right|great|good|nice|perfect|cool|thanks|thank you|hey|hi|oh|ah|"
    r"again|sorry|actually|wait|one (?:more )?thing|another thing|fyi|important|(?:quick |side )?note|reminder|careful|"
    r"wrong|then|now|also|as i said|like i said|i repeat|for the record|"
    r"nein|ja|gut|ach|übrigens|außerdem|noch was|wichtig|achtung|danke|nochmal|falsch|wie gesagt|"
    r"non|oui|au fait|aussi|attention|merci|d'accord|s'il te pla[iî]t|s'il vous pla[iî]t|comme je l'ai dit|"
    r"s[ií]|por cierto|además|vale|ojo|gracias|bueno|otra cosa|como dije)\s*[,.:;!–—-]+\s*|"
    r"(?:ok|okay|actually|please|pls|btw|by the way|also|and|but|so|just|then|bitte|und|aber|also|stp|svp|et|mais|donc|y|"
    r"pero|por favor|así que)[,:]?\s+)+",
    re.IGNORECASE,
)
# An adverbial before the subject, without a comma.
ADVERBIAL = re.compile(r"(?:for|in|on|with|inside|during) [^,:;?!]{2,60}? (?=(?:we|you) )", re.IGNORECASE)
# A side clause or an adverbial before the main clause.
SIDE_CLAUSE = re.compile(
    r"(?:when(?:ever)?|if|before|after|while|once|unless|until|for|in|on|at|with|as|because|since|every time|each time|"
    r"wenn|falls|bevor|nachdem|sobald|solange|weil|da|bei|beim|für|in|im|vor|nach|"
    r"quand|lorsque|avant|après|si|pour|dans|chaque fois|à chaque|"
    r"cuando|antes|después|si|al|para|en|cada vez)\b[^,:?!]{2,120}[,:]\s+",
    re.IGNORECASE,
)
# Asks for something to be remembered.
MEMORY = _any(
    r"remember(?! me\b| when\b| how\b| the time\b| back\b| all the\b| (?:(?:the|their|his|her|which) )?(?:last|previous|selected|"
    r"current|chosen|users?|window|position|choice)\b)|(?:keep|bear)(?: \w+)? in mind|"
    r"(?:make|take)(?: a)?(?: mental)? note|don['’]?t (?:you )?(?:ever )?forget|do not (?:ever )?forget|never forget|"
    r"notes? (?:for|to) (?:the |your )?(?:future|later|yourself|self)|memori[sz]e|"
    r"(?:save|store|add|put|write) (?:this|that|it) (?:down|(?:in|to|into) (?:your |the )?(?:memory|notes|learnings))",
    r"merke?t? (?:dir|euch)|merke(?= ?:)|(?:bitte )?merken|denke?t? (?:bitte )?(?:immer )?d(?:a)?ran|"
    r"vergiss (?:bitte )?(?:nicht|nie)|notiere? dir|behalte? (?:bitte )?im (?:kopf|hinterkopf|auge|gedächtnis)",
    r"retiens|retenez|souviens-toi|souvenez-vous|rappelle-toi|rappelez-vous|n['’]oublie[sz]? (?:pas|jamais)|"
    r"(?:garde[sz]?|gardez) (?:bien )?(?:en tête|à l['’]esprit|en mémoire)|mémorise[sz]?|note[sz]? bien|prends note",
    r"recu[eé]rda(?:lo|me)?|recuerde|recordad|acu[eé]rdate|no (?:te )?olvides|no olvid[eé]is|ten(?:ga|ed)? (?:en cuenta|"
    r"presente)|toma nota|apunta|memoriza",
    at_start=True,
)
# Says that something holds from now on.
STANDING = _any(
    r"from now on(?:wards)?|from here on(?: out)?|going forwards?|moving forwards?|henceforth|in (?:the )?future|"
    r"for (?:all )?(?:your )?future (?:\w+ )?(?:work|tasks?|sessions?|changes|prs?|commits|reference|runs)|for the future|(?:the )?next time(?: around)?|as of (?:now|today)|starting (?:now|today)|"
    r"for (?:next time|the next ones)",
    r"ab (?:jetzt|sofort|heute|nun)|von (?:nun|jetzt|heute) an|in zukunft|(?:zu)?künftig|für die zukunft|fortan|"
    r"(?:das |beim |fürs )?nächste[sn]? mal|für die nächsten",
    r"à partir de maintenant|à partir d['’]aujourd['’]hui|dès maintenant|dorénavant|désormais|à l['’]avenir|"
    r"dans le futur|la prochaine fois|pour (?:la suite|l['’]avenir|la prochaine fois)",
    r"a partir de (?:ahora|hoy)|(?:de|desde) (?:ahora|hoy|aqu[ií])(?: en adelante)?|en adelante|en (?:el |lo )?"
    r"(?:futuro|sucesivo)|la pr[oó]xima vez|para la pr[oó]xima|para el futuro",
)
# Says that the future is uncertain.
PERHAPS = _any(
    r"might|could|may|maybe|perhaps|would|plan(?:ning)? to|(?:we|i)['’]?(?:ll| will)|thinking of",
    r"will (?:be|have)|könnten?|vielleicht|eventuell|würden?|wollen wir",
    r"pourrait|pourrions|peut-être|on va|allons",
    r"podr[ií]a\w*|quiz[aá]s?|tal vez|vamos a",
)
# Says that something holds this time only.
ONE_OFF = _any(
    r"for now|right now|this time|(?:just )?this once|for the (?:moment|time being)|at the moment|today|tonight|tomorrow|"
    r"yet|currently|(?:in|for|on|with) this (?:[\w.-]+ )?(?:deployment|pr|mr|pull request|commit|change|branch|session|conversation|function|"
    r"test|case|ticket|issue|task|step|round|patch|diff|iteration|one|fix|feature|bug|release|sprint|turn)|"
    r"until (?:i|we|the|it|that)|before (?:you start|we start|i)|the last (?:change|commit|edit|two)|"
    r"(?:first|second|last|previous) (?:one|option|approach|version|commit|change)",
    r"diesmal|dieses mal|heute|vorerst|erst ?mal|fürs erste|im moment|noch nicht|momentan|"
    r"(?:in|für) diese[mnrs]? (?:pr|commit|branch|ticket|fall|test|funktion|änderung|aufgabe)",
    r"pour l['’]instant|pour le moment|cette fois(?:-ci)?|aujourd['’]hui|pas encore|"
    r"(?:dans|pour) (?:ce|cette) (?:pr|commit|branche|ticket|cas|test|fonction|tâche)",
    r"por ahora|de momento|esta vez|hoy|todav[ií]a no|aún no|(?:en|para) est[ea] (?:pr|commit|rama|ticket|caso|tarea)",
)
# Forbids or demands something without exception, in other languages than English.
UNIVERSAL_ABROAD = _any(
    r"(?<!noch )nie(?:mals)?(?: wieder| mehr)?|(?<!wie )immer(?! noch\b)|stets|grundsätzlich|prinzipiell|ausnahmslos|"
    r"auf keinen fall|unter keinen umständen|generell",
    r"jamais|(?<!comme )toujours(?! pas\b)|systématiquement|en aucun cas|sous aucun prétexte",
    r"nunca|jamás|(?<!como )siempre|en ningún caso|bajo ningún (?:concepto|pretexto|motivo)",
)
UNIVERSAL = _any(
    r"always|never|under (?:no|any) circumstances|without exception|at no point|every (?:single )?time|each time|whenever|"
    r"consistently|strictly",
)
# Makes a prohibition one of all cases.
NO_LONGER = _any(
    r"ever(?! since)|again|any ?more|under any circumstances|every (?:single )?time|each time|anywhere|not here|elsewhere|"
    r"in general|nie wieder|nie mehr|nirgends|plus jamais|nulle part|nunca más|en ninguna parte"
)
# A fragment that makes the order before it one for all cases: `Always.`, `every time`.
FRAGMENT = re.compile(
    r"(?:always|never|every (?:single )?time|each time|no exceptions?|immer|nie(?:mals)?|jedes mal|ausnahmslos|toujours|jamais|"
    r"à chaque fois|sans exception|siempre|nunca|cada vez|sin excepción)(?:[.!,]|$| (?:for|in|with|when|on|and|für|in|bei|wenn|"
    r"pour|dans|para|en)\b)|.{0,80}, (?:always|every (?:single )?time|each time|immer|jedes mal|toujours|à chaque fois|siempre|"
    r"cada vez)[.!]*$",
    re.IGNORECASE,
)
# Points at what was said before: `stick to that`.
POINTS_BACK = re.compile(
    r"\b(?:stick (?:to|with)|follow|do|keep(?: to)?|use|apply|remember|mach|halte?|fais|haz) (?:that|this|it|those|these|so|"
    r"das|dich daran|comme ça|así|eso)\b|^(?:the )?same (?:goes|applies)\b|^(?:that|this|it) (?:goes|applies|holds)\b|"
    r"^(?:das|dasselbe) gilt\b|^(?:ça|cela|ceci) vaut\b|^(?:eso|lo mismo) vale\b",
    re.IGNORECASE,
)
# A request that has the form of a question or a wish.
REQUEST = re.compile(
    r"(?:can|could|would|will) you(?: please)?,? |i(?:['’]d| would) like you to |i (?:want|need) you to |make sure (?:to |that "
    r"you |you )|be sure to |(?:kannst|könntest|würdest) du(?: bitte)? |(?:peux|pourrais)-tu |tu peux |¿?(?:puedes|podrías) ",
    re.IGNORECASE,
)
# What is done whenever something of a kind comes up: an indefinite thing, not the one of this task.
HABITUAL = re.compile(
    r"(?:when(?:ever)?|every time|each time|if) (?:you(?:['’]re)?|we|(?!\w*thing)\w+ing)\b(?: \S+){0,3}? "
    r"(?:an?|any|new|another|some|every|[\w.`-]{3,}s|sql)\b|(?:before|after) (?:each|every|\w+ing\b(?: \S+){0,2}? [\w.`-]{3,}s)\b|"
    r"^(?:for|in|with|on) (?!this|the|that|these|those|my|his|all|both|most)(?:[\w-]+ ){0,2}[\w-]{3,}s[,:] |"
    r"(?:wenn|bevor|sobald|falls) (?:du|wir|man)\b(?: \w+){0,2}? (?:eine?n?|neue)\b|vor jede[mnr]\b|"
    r"(?:quand|avant de|dès que) (?:tu|on|vous)?\b(?: \w+){0,3}? (?:une?|des)\b|avant chaque\b|"
    r"(?:cuando|antes de)\b(?: \w+){0,3}? una?\b|antes de cada\b",
    re.IGNORECASE,
)
CIRCUMSTANCE = _any(
    r"before (?:each|every|any|you|\w+ing)|after (?:each|every|any|\w+ing)|when(?:ever)?(?: you)?|(?:each|every) time|if you",
    r"bevor|wenn du|vor jede[mnr]|nach jede[mnr]|jedes mal",
    r"avant (?:chaque|de)|après chaque|quand tu|chaque fois",
    r"antes de|después de|cuando|cada vez",
)
# Stops what the agent keeps doing.
STOP = _any(
    r"(?:stop|quit|no more) (?:\w+ly )?(?:\w+ing)(?! it\b| this\b[.!]?$)(?= \S)",
    r"hör(?:t)? (?:bitte )?(?:endlich )?auf|lass(?:t)? (?:bitte )?die finger von",
    r"(?:arrête[sz]?|cesse[sz]?) (?:de|d['’])(?=\w| \w)",
    r"(?:deja|dejad|deje|para) de",
    at_start=True,
)
ARRETE = re.compile(r"(?:arrête[sz]?|cesse[sz]?) d['’]", re.IGNORECASE)
FORBIDDEN = _any(
    r"(?:is|are|stays?|remains?)(?: strictly| absolutely| completely)? (?:forbidden|prohibited|banned|disallowed|verboten|"
    r"off[- ]limits|taboo|a no-go|no-gos?)",
    r"(?:ist|sind|bleibt|bleiben)(?: streng| absolut)?(?: \w+)? (?:verboten|tabu|untersagt)",
    r"(?:est|sont)(?: strictement)? (?:interdite?s?|proscrite?s?)",
    r"(?:está|están|queda|quedan)(?: estrictamente)? prohibid[oa]s?",
)
NOBODY = _any(
    r"(?:nobody|no one|no-one) (?:may|must|should|can|is allowed|(?:touch|push|merge|edit|deploy|commit|chang|releas|"
    r"delet|write|writ|rebas|modif|bypass|skip)(?:e?s|ies))",
    r"niemand (?:darf|pusht|merged?t?|ändert|deployt|fasst)",
    r"personne ne (?:doit|peut|touche|pousse|modifie)",
    r"nadie (?:debe|puede|toca|sube|modifica)",
    at_start=True,
)
POLICY = _any(
    r"as a (?:general )?rule|as a matter of (?:policy|principle)|by convention|house rule|"
    r"(?:our|the|a) (?:\w+ )?(?:convention|policy|rule|standard|style guide|guideline|practice|agreement)s?(?: here)?"
    r"(?: (?:for|on|about|with) [\w ]{2,40})? (?:is|are|says?|demands?|requires?)|"
    r"(?:rule|convention|policy) (?:here|in this \w+)",
    r"in der regel|per konvention|laut konvention|unsere (?:konvention|regel|richtlinie)\w* (?:ist|lautet|sagt)",
    r"par convention|en règle générale|notre (?:convention|règle|politique) (?:est|c['’]est)",
    r"por (?:convención|norma|regla general)|nuestra (?:convención|norma|regla|política) es",
)
# Says that something is settled, or is to become a habit.
AGREED = _any(
    r"(?:we|as) (?:all )?agreed|agreed (?:on|to)|let['’]?s agree|habit|on (?:principle|purpose)|by design|policy|convention|"
    r"our (?:style|standard|rule)s?|(?:house|our|the) style(?: guide)?",
    r"vereinbart|abgemacht|abgesprochen|absichtlich|mit absicht|gewohnheit",
    r"convenu|d['’]un commun accord|exprès|par principe|habitude",
    r"acordado|a propósito|por principio|costumbre",
)
# Says that something holds for all of a kind.
QUANTIFIER = _any(
    r"all|every|each|any|only|anywhere|everywhere|whole|throughout|without asking",
    r"alle[nrs]?|jede[nmrs]?|nur|überall|ausschließlich",
    r"tous|toutes|chaque|seulement|partout|uniquement",
    r"todos|todas|cada|sol[oa]mente|solo|sólo|únicamente",
)
# Names the project, the team or the place as a whole.
PLACE = _any(
    r"on (?:this|my|our|your) (?:machine|box|laptop|servers?|system|cluster|network|runners?|side)|"
    r"in (?:this|our|the) (?:\w+ )?(?:repo|repository|project|codebase|code base|monorepo|team|company|organi[sz]ation)|"
    r"(?:on|for|at) (?:this|our) (?:repo|repository|project|codebase|team|company)|(?:a|over )?(?:round )?here(?! is\b| are\b|"
    r"['’]s\b|:)|around here",
    r"in (?:diesem|unserem|dem) (?:repo|repository|projekt|code|team|unternehmen)|bei uns|hier(?! ist\b| sind\b)",
    r"dans (?:ce|notre) (?:projet|dépôt|repo|code|équipe)|chez nous|ici",
    r"en (?:este|nuestro) (?:proyecto|repo|repositorio|equipo|código)|aquí",
)
EVERYWHERE = _any(
    r"(?:in|for|across|on) (?:all|every|each|any)(?: of)?(?: my| our| your)? (?:projects?|repos?|repositor(?:y|ies)|"
    r"codebases?)|not (?:just|only) (?:in )?(?:here|this (?:repo|project|one))|regardless of (?:the )?(?:repo|project)|"
    r"whatever the (?:repo|project)|wherever you work|no matter which (?:repo|project)",
    r"in all(?:en)? (?:meinen |unseren )?(?:projekten|repos|repositories)|in jedem (?:projekt|repo)|nicht nur (?:hier|in "
    r"diesem (?:projekt|repo))|projektübergreifend",
    r"dans tous (?:mes|nos|les) (?:projets|dépôts|repos)|pas (?:seulement|que) (?:ici|dans ce (?:projet|dépôt|repo))",
    r"en todos (?:mis|nuestros|los) (?:proyectos|repos|repositorios)|no sol[oó] (?:aquí|en este (?:proyecto|repo))",
)
# The team as the subject.
WE = _any(
    r"we|our team|the team",
    r"wir|(?:(?!wenn|weil|dass|ob|was|wie)[\w-]+ ){1,4}?\w+en wir",
    r"on(?= (?:n['’]|ne |a |utilise|fait|met|écrit|passe|préfère|teste|garde|nomme|appelle|code|range|stocke|lance))|nous",
    r"(?:nosotros )?(?:siempre |nunca |no |solo |sólo |ya )?\w{2,}(?:amos|emos|imos)",
    at_start=True,
)
DO_NOT = re.compile(
    r"(?:don['’]?t|do not|please don['’]?t|avoid)(?: ever| just)? (?P<verb>[a-z'`]+)|"
    r"(?P<abroad>il ne faut (?:pas|plus)\b|man darf (?:\w+ )?(?:nicht|keine?n?)\b|no (?:hay que|se debe)\b|(?:\w+ )?(?:bitte )?(?:keine?n?|nicht)\b|(?:ne |n['’])\w+ pas\b|pas de\b|no \w+[eé]?s\b)",
    re.IGNORECASE,
)
# How a sentence begins that gives the reason or the remedy of the one before it.
GOES_ON = _any(
    r"it|it['’]s|it['’]ll|they|they['’]re|that|that['’]s|this|those|these|there|he|she|because|since|otherwise|else|"
    r"the reason|instead|rather|so|which|always use|use|call|run|put|prefer|just|ask|only|we have|we use|we['’]ve|"
    r"we already|our|its|everything|both|same|in particular|for example|e\.g|i\.e|exceptions?|unless|except|if|then|"
    r"don['’]?t|do not|you['’]ll|you will|last time|i['’]ve|i had|we lost|we had|we got",
    r"es|sie|das|die|dies|sonst|ansonsten|weil|denn|nimm|nutze|verwende|benutze|stattdessen|lieber|wir haben|dort|dann|"
    r"der grund|nur|außer|wenn|falls|beim letzten mal",
    r"il|ils|elles?|ça|cela|c['’]est|sinon|car|parce|utilise|utilisez|plutôt|à la place|on a|nous avons|la raison|sauf|si",
    r"es|son|eso|esto|si|porque|usa|utiliza|mejor|en su lugar|tenemos|la razón|salvo|excepto|está|están",
    at_start=True,
)
# An order to use something; what follows is used, unless an article makes it one thing of this task.
USE = re.compile(
    r"(?:please )?(?:use|prefer|take|pick|stick (?:to|with)|go with|run|call|write|import|name|spell|say|"
    r"nimm|nutze?|verwende?|benutze?|schreibe?|rufe?|bevorzuge?|"
    r"utilise[sz]?|prends|préfère[sz]?|écris|lance[sz]?|"
    r"usa|utiliza|prefiere|escribe|ejecuta|llama)(?: hier| ici| aquí| here)? (?P<what>\S+)",
    re.IGNORECASE,
)
WHY_DID_YOU = _any(
    r"why (?:did|do|are|would|have|were) you|why (?:is|are|the|this|not|would)|who told you|what['’]s with|again\?|since when",
    r"warum (?:hast|machst|benutzt|verwendest|nimmst)|wieso",
    r"pourquoi (?:as-tu|tu as|avez|utilise)",
    r"por qué (?:has|usaste|usas|instalaste|pusiste)",
    at_start=True,
)
QUESTION = _any(
    r"why|what|how|who|where|which|can (?:you|we|i)|could (?:you|we|i)|would (?:you|it)|should (?:we|i|it)|do (?:you|we|i|"
    r"they)|does|did|is (?:it|there|this|that)|are (?:you|we|there|they)|will|shall|have you|any idea|explain|tell me|"
    r"i wonder|show me|describe|investigate|find out",
    r"warum|wieso|weshalb|was|wie|wer|wo|kannst du|könntest|soll(?:en|te)? (?:ich|wir)|weißt du|erinnerst|erkläre?|zeige?",
    r"pourquoi|comment|que|qu['’]est|quel(?:le)?s?|où|peux-tu|pouvez|est-ce|tu te souviens|explique|montre|sais-tu",
    r"por qué|cómo|qué|quién|dónde|puedes|podrías|recuerdas|explica|sabes",
    at_start=True,
)
# A heading above rules.
HEAD = re.compile(
    r"\b(?:(?:ground |house |team |project |coding |our |some |few |the |following |my )+(?:rules|conventions|guidelines|"
    r"standards|principles|preferences)|(?:rules|conventions|guidelines|preferences) (?:for|in|of|here)|do['’]?s and don['’]?ts|"
    r"things to (?:remember|keep in mind|know)|(?:regeln|konventionen) (?:für|in)|ein paar regeln|"
    r"(?:règles|conventions) (?:pour|du|de)|quelques règles|(?:reglas|convenciones) (?:para|de)|algunas reglas)\b",
    re.IGNORECASE,
)
# Lines of a log, a trace or a shell.
FOREIGN_LINE = re.compile(
    r"\s*(?:\w*(?:Error|Exception|Warning)\b(?::| \()|Traceback \(|at [\w.$<>]+\(|\[?\d{4}-\d\d-\d\d|"
    r"\[?(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|CRITICAL|TRACE)\b|[$❯%] \S|[\w.-]+@[\w.-]+[:~]|[\w./\\-]+:\d+(?::\d+)?:|"
    r"(?:From|To|Subject|Date|Cc): |[+-]{3} [ab]/|@@ )"
)
# Asks to work on a text, which follows.
ABOUT_TEXT = re.compile(
    r"\b(?:explain|summari[sz]e|translate|proofread|paraphrase|rewrite|review|tl;?dr|what does (?:this|that|it) (?:mean|say)|"
    r"read (?:this|the following)|following|below|here(?:['’]s| is| are)|see this|pasted?|copied|from the|according to|"
    r"erkläre?|fasse?\b.*\bzusammen|übersetze?|folgende\w*|hier (?:ist|sind)|laut|"
    r"explique|résume|traduis|voici|ci-dessous|selon|explica|resume|traduce|aquí (?:está|tienes)|según)\b",
    re.IGNORECASE,
)
REPORTED = re.compile(
    r"(?:the |our |my |a |der |die |das |le |la |el )?[\w.-]+(?: [\w.-]+){0,3}? (?:says?|said|wrote|claims?|claimed|told (?:me|us)|"
    r"suggests?|sagt|sagte|schrieb|meint|dit|a écrit|prétend|dice|dijo|escribió)\b|(?:according to|laut|selon|d['’]après|"
    r"según) ",
    re.IGNORECASE,
)
# A choice among what the agent offered.
CHOICE = _any(
    r"let['’]?s|go (?:with|for)|option|choose|pick|i(?:['’]d| would)? (?:prefer|choose|go|take)|the (?:first|second|third|former|"
    r"latter)|neither|keep|use|take|yes|no|a|b|c|[1-9]|stick|leave|both|do",
    r"nimm|lass uns|wir nehmen|variante|ja|nein|lieber|behalte?|verwende|nutze|die (?:erste|zweite)",
    r"prends|on prend|partons|oui|non|plutôt|garde[sz]?|utilise|la (?:première|deuxième|seconde)",
    r"vamos con|usa|mejor|s[ií]|no|la (?:primera|segunda)|quédate|mantén",
    at_start=True,
)
BECAUSE = _any(
    r"because|since|so that|as (?:we|it|they|the)|otherwise|due to|the reason",
    r"weil|denn|da (?:wir|es|sie|die|der|das)|damit|sonst|wegen",
    r"parce (?:que|qu['’])|car|puisque?|sinon|pour que",
    r"porque|ya que|pues|si no|para que|debido a",
)
OPTION = re.compile(
    r"^(?:(?:let['’]?s )?(?:go (?:with|for)|take|do|use|pick|choose)?\s*)?(?:option|variant|variante|opción|choice|number|nr\.?|#)"
    r"?\s*\(?(?P<name>[a-e1-9])\)?(?=[\s,.:;!–—-]|$)",
    re.IGNORECASE,
)
# What a rule says to use, and what it says not to use any more.
CHOSEN = re.compile(
    r"\b(?:use[sd]?|using|prefer|take|run|nimm|nehmen|nutzen?|verwenden?|benutzen?|utilis\w+|prends|usa|usamos|utiliza\w*)\b"
    r"(?: (?:only|always|immer|toujours|siempre|hier|ici|aquí))? (?P<what>[`\w.-]+)",
    re.IGNORECASE,
)
REJECTED = re.compile(
    r"\b(?:not|instead of|rather than|no longer|never use|don['’]?t use|stop using|statt|anstatt|nicht mehr|nicht|keine?n?|"
    r"au lieu de|plutôt que|pas|plus|en lugar de|en vez de|no) (?P<what>[`\w.-]+)",
    re.IGNORECASE,
)
