"""Checks and reviews that rejected something: what each of them teaches, or that it teaches nothing.

A case of a check is the command, what it printed, what happened until it passed, and the words that a learning must
contain (empty: it teaches nothing). What happened is a list of edits (path, before, after), commands and messages.
"""

from __future__ import annotations

Happened = tuple[str, ...]  # (message,), ("$", command) or (path, before, after)
CheckCase = tuple[str, str, tuple[Happened, ...], tuple[str, ...]]
ReviewCase = tuple[str, tuple[str, ...]]

# What a check rejects by a rule of the project or of the tool, and what made it pass.
TAUGHT_BY_CHECKS: tuple[CheckCase, ...] = (
    (
        "make ci",
        "licenses: helper/net.go: no copyright notice at the top of the file",
        (("helper/net.go", "package helper\n", "// Copyright 2026 Blauwal BV\n\npackage helper\n"),),
        ("copyright",),
    ),
    (
        "git commit -am 'fixed the thing'",
        "⧗   input: fixed the thing\n✖   subject may not be empty [subject-empty]\n✖   type may not be empty "
        "[type-empty]\n"
        "husky - commit-msg script failed (code 1)",
        (("$", "git commit -am 'fix(cart): keep the voucher'"),),
        ("type may not be empty|subject may not be empty",),
    ),
    (
        "git push origin HEAD",
        "remote: error: GH006: Protected branch update failed for refs/heads/main.\n"
        "remote: error: Changes must be made through a pull request.\n ! [remote rejected] HEAD -> main",
        (("$", "git push origin HEAD:topic/voucher"), ("$", "git push origin HEAD")),
        ("pull request",),
    ),
    (
        "pre-commit run --all-files",
        "no-todo-without-ticket...........................................Failed\n- hook id: ticket-todo\n- exit "
        "code: 1\n\n"
        "app/cart.py:41: TODO comments must carry a ticket, for example TODO(SHOP-12)",
        (("app/cart.py", "# TODO: rounding", "# TODO(SHOP-812): rounding"),),
        ("todo", "ticket"),
    ),
    (
        "npm run lint",
        "/srv/shop/src/Login.tsx\n  8:10  error  'moment' import is restricted from being used. Use 'date-fns' "
        "instead"
        "  no-restricted-imports\n\n✖ 1 problem (1 error, 0 warnings)",
        (("src/Login.tsx", "import moment from 'moment'", "import { format } from 'date-fns'"),),
        ("date-fns",),
    ),
    (
        "golangci-lint run ./...",
        "billing/invoice.go:12:2: import 'database/sql' is not allowed from list 'core': core packages must reach "
        "the "
        "database through internal/repo (depguard)\n1 issues.",
        (("billing/invoice.go", '\t"database/sql"', '\t"shop/internal/repo"'),),
        ("internal/repo", "core packages"),
    ),
    (
        "cargo deny check",
        "error[rejected]: failed to satisfy license requirements\n  = GPL-3.0 - rejected: license is not explicitly "
        "allowed in deny.toml\nadvisories ok, bans ok, licenses FAILED",
        (("Cargo.toml", 'barcode = "0.3"', 'rxing = "0.5"'),),
        ("license",),
    ),
    (
        "terraform validate && tflint",
        '1 issue(s) found:\n\nError: resource "aws_s3_bucket" must carry the tags owner and cost_center '
        "(aws_resource_missing_tags)\n  on main.tf line 9",
        (("infra/main.tf", 'bucket = "logs"\n', 'bucket = "logs"\n  tags = { owner = "ops", cost_center = "42" }\n'),),
        ("tags", "cost_center"),
    ),
    (
        "bin/rails test",
        "Failure:\nI18nTest#test_no_missing_keys [test/i18n_test.rb:7]:\nde.orders.refunded is missing: every key of "
        "config/locales/en.yml must exist in config/locales/de.yml",
        (("config/locales/de.yml", "orders:\n", "orders:\n    refunded: Erstattet\n"),),
        ("de.yml",),
    ),
    (
        "./gradlew check",
        "> Task :archTest FAILED\nArchitecture Violation: Rule 'no classes in package ..web.. should depend on "
        "classes in "
        "package ..jpa..' was violated (1 times)\nBUILD FAILED in 9s",
        (("src/main/java/shop/web/CartController.java", "import shop.jpa.CartRow;", "import shop.domain.Cart;"),),
        ("..web..", "..jpa.."),
    ),
    (
        "make verify",
        "check-env: STRIPE_TIMEOUT is read in payments/client.py but not listed in .env.example",
        ((".env.example", "STRIPE_KEY=\n", "STRIPE_KEY=\nSTRIPE_TIMEOUT=10\n"),),
        (".env.example",),
    ),
    (
        "yarn test:ci",
        'Jest: "global" coverage threshold for branches (85%) not met: 83.9%\nerror Command failed with exit code 1.',
        (("src/cart.test.ts", "describe('cart', () => {", "describe('cart', () => {\n  it('rejects 0', zero)"),),
        ("coverage", "85"),
    ),
    (
        "uv run lint-imports",
        "Broken contracts\n----------------\n\nlayers\n\nshop.domain is not allowed to import shop.api:\n\n-   "
        "shop.domain.cart -> "
        "shop.api.schemas (l.3)",
        (("shop/domain/cart.py", "from shop.api.schemas import CartOut", "from shop.domain.types import Cart"),),
        ("shop.domain", "shop.api"),
    ),
    (
        "dotnet build",
        "Orders/Sync.cs(31,9): error RS0030: The symbol 'DateTime.Now' is banned in this project: use IClock.UtcNow\n"
        "Build FAILED.",
        (("Orders/Sync.cs", "var now = DateTime.Now;", "var now = _clock.UtcNow;"),),
        ("iclock",),
    ),
    (
        "kubectl apply -f deploy.yaml",
        'Error from server (Forbidden): error when creating "deploy.yaml": admission webhook "policy.corp" denied '
        "the "
        "request: containers must set resources.limits.memory",
        (("deploy.yaml", "image: cart:3", "image: cart:3\n        resources: { limits: { memory: 256Mi } }"),),
        ("limits.memory",),
    ),
    (
        "mix credo --strict",
        "┃ [W] ↗ There should be no calls to IO.puts in lib, use Logger instead.\n┃       lib/shop/cart.ex:14:5 "
        "#(Shop.Cart.total)",
        (("lib/shop/cart.ex", 'IO.puts("total")', 'Logger.info("total")'),),
        ("logger",),
    ),
    (
        "make proto-check",
        'api/v1/cart.proto:22:3:Field name "cartID" should be lower_snake_case, such as "cart_id".\n'
        'api/v1/cart.proto:30:1:Previously present field "5" was deleted; reserve its number instead',
        (("api/v1/cart.proto", "string cartID = 4;", "string cart_id = 4;\n  reserved 5;"),),
        ("reserve|snake_case",),
    ),
    (
        "python manage.py makemigrations --check",
        "Your models in app(s): 'orders' have changes that are not yet reflected in a migration; add one with the "
        "change",
        (("$", "python manage.py makemigrations orders"),),
        ("migration",),
    ),
    (
        "npm run size",
        "  ✖ dist/widget.js: package size limit has exceeded by 3.1 kB\n  Size limit: 40 kB\n  Size: 43.1 kB",
        (
            ("`lodash-es` imports must name the function, or the whole library lands in the bundle.",),
            ("src/widget.ts", "import _ from 'lodash-es'", "import debounce from 'lodash-es/debounce'"),
        ),
        ("lodash",),
    ),
    (
        "poetry run pytest tests/test_docs.py",
        "E   AssertionError: the settings SHIP_DELAY have no row in docs/settings.md\n1 failed, 11 passed",
        (("docs/settings.md", "| SHIP_ZONE |", "| SHIP_DELAY | 2 |\n| SHIP_ZONE |"),),
        ("docs/settings.md",),
    ),
    (
        "pnpm test",
        'TestingLibraryElementError: Unable to find an accessible element with the role "dialog"\n1 failed',
        (
            ("`test/render.tsx` has a `renderWithPortal` helper, which mounts the portal root that dialogs need.",),
            ("src/Dialog.test.tsx", "render(<Dialog />)", "renderWithPortal(<Dialog />)"),
        ),
        ("renderwithportal",),
    ),
    (
        "go test ./internal/queue",
        "panic: queue: clock not set\n--- FAIL: TestDrain (0.00s)\nFAIL",
        (
            ("Queues in tests need `queuetest.New(t)`: it sets the fake clock and closes the queue.",),
            ("internal/queue/drain_test.go", "q := New()", "q := queuetest.New(t)"),
        ),
        ("queuetest",),
    ),
    (
        "bundle exec rubocop",
        "app/models/cart.rb:9:5: C: Shop/NoFloatMoney: Do not use Float for money, use BigDecimal or Money.",
        (("app/models/cart.rb", "total = 1.5", "total = BigDecimal('1.5')"),),
        ("bigdecimal|money",),
    ),
    (
        "git commit -m 'add voucher'",
        "check-added-large-files.......Failed\nassets/hero.psd (8123 KB) exceeds 500 KB; large files belong in Git "
        "LFS.",
        (("$", "git lfs track '*.psd'"), ("$", "git commit -m 'add voucher'")),
        ("git lfs|lfs",),
    ),
    (
        "composer validate --strict",
        "./composer.json is valid, but with a few warnings\nrequire.monolog/monolog : unbound version constraints "
        "(*) should be "
        "avoided",
        (("composer.json", '"monolog/monolog": "*"', '"monolog/monolog": "^3.5"'),),
        ("version constraints",),
    ),
    (
        "ansible-lint site.yml",
        "fqcn[action-core]: Use FQCN for builtin module actions (copy).\nroles/web/tasks/main.yml:4 Use "
        "`ansible.builtin.copy` or "
        "`ansible.legacy.copy` instead.",
        (("roles/web/tasks/main.yml", "copy:", "ansible.builtin.copy:"),),
        ("ansible.builtin|fqcn",),
    ),
    (
        "helm lint charts/shop",
        "[ERROR] templates/: values.yaml: replicas is required by the schema in charts/shop/values.schema.json",
        (("charts/shop/values.yaml", "image: shop", "image: shop\nreplicas: 2"),),
        ("values.schema.json|values.yaml",),
    ),
    (
        "make check",
        "api-lint: POST /vouchers has no rate limit; each public endpoint needs one in gateway/limits.yaml",
        (("gateway/limits.yaml", "- /orders: 10", "- /orders: 10\n- /vouchers: 5"),),
        ("limits.yaml",),
    ),
    (
        "npm run build",
        "Error: Environment variables used in the browser must start with NEXT_PUBLIC_ (found: API_HOST)",
        (("src/api.ts", "process.env.API_HOST", "process.env.NEXT_PUBLIC_API_HOST"),),
        ("next_public_",),
    ),
    (
        "flutter analyze",
        "  error • Avoid print calls in production code, use the log function of package:logging • "
        "lib/cart.dart:9:3 • avoid_print",
        (("lib/cart.dart", "print(total);", "log.info(total);"),),
        ("print",),
    ),
)

# Unfinished code, typing mistakes, networks and what is true of one case only.
NOT_TAUGHT_BY_CHECKS: tuple[CheckCase, ...] = (
    (
        "pytest tests/test_cart.py -q",
        "E   assert 3 == 4\n1 failed, 6 passed",
        (("shop/cart.py", "return n", "return n + 1"),),
        (),
    ),
    (
        "pytest -q",
        "E   KeyError: 'voucher'\n1 failed, 2 passed",
        (("The dict has no voucher yet. I use `get`.",), ("shop/cart.py", "cart['voucher']", "cart.get('voucher')")),
        (),
    ),
    (
        "npm test",
        "  ● total › adds the tax\n\n    expect(received).toBe(expected)\n\n    Expected: 119\n    Received: "
        "100\n\nTests: 1 failed",
        (("src/total.ts", "return net", "return net * 1.19"),),
        (),
    ),
    (
        "cargo build",
        "error[E0382]: borrow of moved value: `cart`\n --> src/cart.rs:9:5\nerror: could not compile `shop`",
        (("src/cart.rs", "take(cart)", "take(cart.clone())"),),
        (),
    ),
    (
        "npx tsc --noEmit",
        "src/cart.ts(4,7): error TS2741: Property 'tax' is missing in type '{ net: number; }' but required in type "
        "'Price'.",
        (("src/cart.ts", "{ net: 1 }", "{ net: 1, tax: 0 }"),),
        (),
    ),
    (
        "go build ./...",
        "./cart.go:8:2: missing return\n./cart.go:12:9: undefined: totl",
        (("cart.go", "totl", "total\n\treturn nil"),),
        (),
    ),
    (
        "python -m shop",
        '  File "shop/__main__.py", line 3\n    print("x"\n         ^\nSyntaxError: \'(\' was never closed',
        (("shop/__main__.py", 'print("x"', 'print("x")'),),
        (),
    ),
    (
        "ruff check .",
        "shop/cart.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.",
        (("shop/cart.py", "import os\n", ""),),
        (),
    ),
    (
        "npx prettier --check .",
        "[warn] src/cart.ts\n[warn] Code style issues found in the above file. Run Prettier with --write to fix.",
        (("src/cart.ts", "a=1", "a = 1"),),
        (),
    ),
    (
        "go test ./...",
        "--- FAIL: TestTotal (0.00s)\n    cart_test.go:14: got 10, want 12\nFAIL",
        (("cart.go", "sum", "sum + 2"),),
        (),
    ),
    (
        "pytest -q",
        "E   ValueError: quantity must be positive\n1 failed, 3 passed",
        (("shop/cart.py", "add(0)", "add(1)"),),
        (),
    ),
    (
        "npm run test",
        "FetchError: request to https://registry.example.org failed, reason: connect ECONNREFUSED",
        (("I try it again.",), ("$", "npm run test")),
        (),
    ),
    (
        "jq . config.json",
        "parse error: Expected separator between values at line 4, column 9",
        (("config.json", '"a": 1', '"a": 1,'),),
        (),
    ),
    (
        "make bench",
        "p95 210 ms exceeds the target of 150 ms for this run",
        (("shop/query.py", ".all()", ".first()"),),
        (),
    ),
    (
        "bundle exec rspec",
        "  1) Cart total includes the tax\n     Failure/Error: expect(cart.total).to eq(119)\n       expected: "
        "119\n            got: 100",
        (("app/models/cart.rb", "net", "net * 1.19"),),
        (),
    ),
    (
        "mypy shop",
        'shop/cart.py:9: error: Argument 1 to "add" has incompatible type "str"; expected "int"  [arg-type]\nFound '
        "1 error in 1 file",
        (("shop/cart.py", 'add("1")', "add(1)"),),
        (),
    ),
    (
        "npx eslint src",
        "/srv/shop/src/a.ts\n  3:7  error  'x' is assigned a value but never used  "
        "@typescript-eslint/no-unused-vars\n\n✖ 1 problem",
        (("src/a.ts", "const x = 1\n", ""),),
        (),
    ),
    (
        "./mvnw test",
        "[ERROR] CartTest.total:17 expected: <119> but was: <100>\n[ERROR] Tests run: 4, Failures: 1",
        (("src/main/java/Cart.java", "net", "net * 1.19"),),
        (),
    ),
    (
        "php artisan test",
        "Failed asserting that null is not null.\n  at tests/CartTest.php:22",
        (("The voucher must be loaded before the total is computed, so I load it.",), ("app/Cart.php", "a", "b")),
        (),
    ),
    (
        "pytest tests/test_form.py",
        "E   AssertionError: missing field 'email' in the form\n1 failed",
        (("shop/forms.py", "fields = ['name']", "fields = ['name', 'email']"),),
        (),
    ),
    (
        "swift test",
        "error: cannot find 'totl' in scope\nerror: fatalError",
        (("Sources/Cart.swift", "totl", "total"),),
        (),
    ),
    (
        "docker build .",
        "ERROR: failed to solve: failed to copy: httpReadSeeker: failed open: 503 Service Unavailable",
        (("$", "docker build ."),),
        (),
    ),
)

# The text of a review with what was done about it, and the words that a learning must contain.
TAUGHT_BY_REVIEWS: tuple[ReviewCase, ...] = (
    (
        "**Blocking** `billing/stripe.py:88`\n\nWebhook handlers must be idempotent: Stripe delivers events more "
        "than once. Look the event "
        "id up in `processed_events` first.\n\nFixed: the handler returns early when the id is known.",
        ("idempotent",),
    ),
    (
        "Finding 3 (security), `app/views.py:40`: the raw SQL is built with an f-string.\n\nWe never build SQL "
        "from strings here; use "
        "the query builder in `db/query.py`.\n\nResolution: rewritten with `select().where()`.",
        ("sql", "query"),
    ),
    (
        "[major] ui/Button.tsx, line 20: hard-coded `#ff8800`. Colours always come from `theme.colors`, otherwise "
        "dark mode breaks.\n\n"
        "Done, uses `theme.colors.accent`.",
        ("theme.colors",),
    ),
    (
        "Review comment on `deploy/Dockerfile`:\n> Base images have to be pinned by digest, tags move under our "
        "feet.\n\nAddressed in 7ab3f20: pinned "
        "node:22 by digest.",
        ("digest",),
    ),
    (
        "- `src/api/orders.ts:12` (high): `any` in the response type. All responses need a zod schema in "
        "`src/schemas`, since the client is generated "
        "from them.\n\nChange: added `orderSchema`.",
        ("schema",),
    ),
    (
        "P2 tests/orders_spec.rb:9\nThe spec sleeps for two seconds. Specs must not sleep; use `travel_to` or wait "
        "for the condition.\n\n"
        "Resolved: replaced by `travel_to`.",
        ("sleep",),
    ),
    (
        "Reviewer (Jonas): `LedgerEntry` rows are updated in place. Ledger rows are append-only by policy: "
        "corrections are booked as new rows.\n\n"
        "Author: changed to insert a correcting entry.",
        ("append-only|corrections",),
    ),
    (
        "> `migrations/0042.sql` adds a NOT NULL column without a default.\n> Columns on large tables are added "
        "nullable first and tightened in a later "
        "release, otherwise the deploy locks the table.\n\nSplit in two migrations as asked.",
        ("nullable",),
    ),
    (
        "Comment on `core/src/lib.rs` line 5 (must fix): `unwrap()` on user input. No `unwrap()` outside tests in "
        "this workspace; return "
        "`ShopError` instead.\n\nFixed with `ok_or(ShopError::Empty)?`.",
        ("unwrap",),
    ),
    (
        "Befund 2 (hoch) `kasse/steuer.py:17`: Beträge werden als float gerechnet. Geldbeträge müssen immer als "
        "`Decimal` gerechnet werden, sonst "
        "stimmen die Summen nicht.\n\nBehoben: auf `Decimal` umgestellt.",
        ("decimal",),
    ),
    (
        "Remarque sur `src/facture.php` ligne 8, gravité : élevée\n\nLes requêtes ne doivent jamais être "
        "construites par concaténation ; utilisez "
        "`Query::bind`.\n\nCorrigé : requête préparée.",
        ("query::bind",),
    ),
    (
        "Comentario en `pagos/cobro.py:30` (grave): la llamada no tiene timeout. Todas las llamadas HTTP deben "
        "pasar por `http_client`, que pone el "
        "timeout.\n\nResuelto: usa `http_client.get`.",
        ("http_client",),
    ),
    (
        "`k8s/cart.yaml`: severity medium. Secrets never go into manifests, they come from the vault through "
        "ExternalSecret.\n\nFixed: moved to an "
        "ExternalSecret.",
        ("externalsecret|vault",),
    ),
    (
        "[nit → should fix] docs/api.md:3. Every public endpoint needs an example request; the docs test only "
        "checks that the heading is there.\n\n"
        "Closed: example added.",
        ("example",),
    ),
    (
        "Finding: `analytics/events.ts` sends the e-mail address. Personal data must not leave the backend: hash "
        "it with `anonId()` before an event is "
        "emitted.\n\nFix: uses `anonId(user)`.",
        ("anonid|personal data",),
    ),
    (
        "src/jobs/mail.rb:12 — severity: high. The job sends the mail inside the transaction. Side effects belong "
        "in `after_commit`, or they happen "
        "although the transaction is rolled back.\n\nResolution: moved to `after_commit`.",
        ("after_commit",),
    ),
    (
        "@lea on `web/cart.vue`: please don't import from `../../store` here, our components only talk to the "
        "store through composables "
        "(`useCart`).\n\nDone, uses `useCart`.",
        ("usecart|composables",),
    ),
    (
        "Review of #77, `internal/http/client.go:31` [P1]: response body isn't closed.\n\nAlways close response "
        "bodies with `httpx.Drain(resp)`, even on "
        "errors: the pool leaks connections otherwise.\n\nFixed in both places.",
        ("httpx.drain|close response bodies",),
    ),
)

NOT_TAUGHT_BY_REVIEWS: tuple[ReviewCase, ...] = (
    ("`shop/cart.py:31` off by one: the last item is skipped.\n\nFixed, added a test.", ()),
    ("nit: typo in the heading of docs/usage.md.\n\nDone.", ()),
    ("[low] ui/Cart.tsx:8: could be a const. Also `x` should be renamed to `quantity`.\n\nResolved: renamed.", ()),
    (
        "Finding 1: `parse()` returns None for an empty body and the caller crashes.\n\nChange: returns an empty "
        "list now.",
        (),
    ),
    ("Review of !12: the date in the footer should be 2026. Please fix before Friday.\n\nFixed.", ()),
    (
        "LGTM, two small remarks: the comment in `a.go` is outdated, and `b.go` has a stray blank line.\n\nBoth done.",
        (),
    ),
    ("[high] `orders.py:90` deletes the wrong rows when the id is 0.\n\nClosed by 3f2a991, condition corrected.", ()),
    ("> Why is this a list and not a set?\n\nOrder matters for the export, so I kept it.", ()),
    ("> Can we merge this today?\n\nYes, merged.", ()),
    ("Comment on `lib/tax.ex` line 4: 0.16 should be 0.19.\n\nCorrected.", ()),
    (
        "[medium] The query in `report.sql` takes 9 s, an index on `day` would help.\n\nAddressed: index added, "
        "0.2 s now.",
        (),
    ),
    ("`README.md`: the badge points to the old repository.\n\nUpdated.", ()),
    ("Finding (correctness): the retry loop never ends when the server answers 204.\n\nFixed by checking for 2xx.", ()),
    ("@tom: please also delete the old file and squash the commits.\n\nDone.", ()),
    ("`web/cart.css:12` the margin is too small on phones, 8px instead of 4px would be better.\n\nChanged to 8px.", ()),
    ("`api/cart.go:77` this must be `>=`, otherwise the voucher of the last day is refused.\n\nFixed.", ()),
)

# Sentences that hold in general, and sentences on one case.
RULES = (
    "Webhook handlers must be idempotent: Stripe delivers events more than once.",
    "We never build SQL from strings here; use the query builder in `db/query.py`.",
    "Colours always come from `theme.colors`, otherwise dark mode breaks.",
    "Base images have to be pinned by digest, tags move under our feet.",
    "All responses need a zod schema in `src/schemas`, since the client is generated from them.",
    "Specs must not sleep; use `travel_to` or wait for the condition.",
    "Ledger rows are append-only by policy: corrections are booked as new rows.",
    "Columns on large tables are added nullable first and tightened later, otherwise the deploy locks the table.",
    "No `unwrap()` outside tests in this workspace; return `ShopError` instead.",
    "Geldbeträge müssen immer als `Decimal` gerechnet werden, sonst stimmen die Summen nicht.",
    "Les requêtes ne doivent jamais être construites par concaténation ; utilisez `Query::bind`.",
    "Todas las llamadas HTTP deben pasar por `http_client`, que pone el timeout.",
    "Secrets never go into manifests, they come from the vault through ExternalSecret.",
    "Every public endpoint needs an example request; the docs test only checks that the heading is there.",
    "Personal data must not leave the backend: hash it with `anonId()` before an event is emitted.",
    "Side effects belong in `after_commit`, or they happen although the transaction is rolled back.",
    "please don't import from `../../store` here, our components only talk to the store through composables.",
    "Always close response bodies with `httpx.Drain(resp)`, even on errors: the pool leaks connections otherwise.",
    "Domain packages may not import api.",
    "Queues in tests need `queuetest.New(t)`: it sets the fake clock and closes the queue.",
    "`lodash-es` imports must name the function, or the whole library lands in the bundle.",
    "`LedgerEntry` rows must never be updated in place.",
    "Migrationen dürfen nie nachträglich geändert werden.",
    "Die Übersetzungen gehören in `locales/de.json`.",
    "Nous n'utilisons jamais `innerHTML` dans les composants.",
    "Las fechas siempre se guardan en UTC.",
    "Feature flags are read through `flags.get`, never from the environment.",
)
REMARKS = (
    "the last item is skipped.",
    "Also `x` should be renamed to `quantity`.",
    "the date in the footer should be 2026. Please fix before Friday.",
    "the comment in `a.go` is outdated, and `b.go` has a stray blank line.",
    "deletes the wrong rows when the id is 0.",
    "Order matters for the export, so I kept it.",
    "0.16 should be 0.19.",
    "the retry loop never ends when the server answers 204.",
    "please also delete the old file and squash the commits.",
    "the margin is too small on phones, 8px instead of 4px would be better.",
    "this must be `>=`, otherwise the voucher of the last day is refused.",
    "The voucher must be loaded before the total is computed, so I load it.",
    "Columns with only blanks aren't empty.",
    "This needs a null check.",
    "The total must be rounded before it is stored.",
    "A test for the empty cart is missing.",
    "You should return 404 here.",
    "Should we cache this?",
    "Das muss `>=` heißen.",
    "Die Summe muss vorher gerundet werden.",
    "Le total doit être arrondi.",
    "`total` must be rounded first.",
    "I always use `get` for that.",
    "It only happens on Windows.",
)
