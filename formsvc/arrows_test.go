package formsvc_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/formsvc/toolkit/"

// arrows lists the packages, of this module or third-party, that each package may import, directly
// or indirectly. An unlisted package fails the test: if you add a package, list its imports here. A
// third-party name may stand for its own dependencies, too: see thirdParty.
var arrows = map[string][]string{
	"webhook":                   {},
	"webhook/webhooktest":       {"webhook"},
	"webhook/egress":            {"code.dny.dev/ssrf"},
	"webhook/delivery":          {"webhook", "webhook/egress", "webhook/delivery/internal/schedule", "code.dny.dev/ssrf"},
	"blobstore":                 {},
	"blobstore/blobtest":        {"blobstore"},
	"blobstore/fileblob":        {"blobstore"},
	"blobstore/memblob":         {"blobstore"},
	"blobstore/s3blob":          {"blobstore", "minio"},
	"blobstore/s3blob/s3test":   {},
	"formsvc":                   {"webhook", "blobstore", "forms"},
	"formsvc/digest":            {"formsvc", "engine", "webhook", "blobstore", "forms"},
	"formsvc/formsvctest":       {"formsvc/digest", "engine", "storage/memory", "blobstore/memblob"},
	"formsvc/otelformsvc":       {"engine", "storage", "formsvc/internal/recorder", "otel"},
	"formsvc/promformsvc":       {"engine", "formsvc/internal/recorder", "prometheus"},
	"formsvc/internal/recorder": {},
	"httpx/internal/limits":     {"golang.org/x/time", "github.com/hashicorp/golang-lru/v2"},
	"httpx/internal/gate":       {"httpx/internal/limits", "golang.org/x/time", "github.com/hashicorp/golang-lru/v2"},
	"httpx/internal/people":     {"formsvc", "webhook", "blobstore", "forms"},
	"httpx/internal/xlsx":       {"formsvc", "webhook", "blobstore", "forms"},
	"httpx/internal/mount":      {},
	"httpx/internal/theme":      {"formsvc", "webhook", "blobstore", "forms"},
	"httpx/internal/wire":       {"formsvc", "webhook", "blobstore", "forms"},
	"httpx":                     {"httpx/internal/mount", "httpx/internal/wire", "httpx/internal/people", "httpx/internal/xlsx", "httpx/internal/gate", "httpx/internal/limits", "formsvc", "webhook", "blobstore", "forms", "github.com/go-json-experiment/json", "golang.org/x/time", "github.com/swaggest/swgui/v5/static"},
	"httpx/client":              {"httpx/internal/wire", "formsvc", "webhook", "blobstore", "forms"},
	"httpx/intake":              {"httpx/internal/mount", "httpx/internal/theme", "httpx/internal/wire", "github.com/dustin/go-humanize", "httpx/internal/gate", "httpx/internal/limits", "formsvc", "webhook", "blobstore", "forms", "github.com/go-json-experiment/json", "golang.org/x/time", "golang.org/x/sync/semaphore", "golang.org/x/text"},
	"httpx/console":             {"github.com/piglig/go-qr", "httpx", "httpx/client", "httpx/internal/mount", "httpx/internal/theme", "httpx/internal/wire", "httpx/internal/people", "httpx/internal/xlsx", "github.com/dustin/go-humanize", "httpx/internal/gate", "httpx/internal/limits", "engine", "github.com/go-json-experiment/json", "golang.org/x/time", "github.com/swaggest/swgui/v5/static"},

	"examples": {}, // tests of the guide; the programs may import anything

	"storage":                   {"engine"},
	"storage/internal/disk":     {},
	"storage/keyring":           {"storage/internal/disk"},
	"storage/storagetest":       {"engine", "storage/memory", "pgregory.net/rapid", "github.com/google/go-cmp"},
	"storage/memory":            {"engine"},
	"storage/internal/bunstore": {"storage", "storage/keyring", "storage/internal/disk", "engine", "bun"},
	"storage/internal/sqltest": {
		"storage", "storage/internal/bunstore", "storage/storagetest", "storage/memory", "storage/keyring", "storage/internal/disk", "engine", "bun", "pgregory.net/rapid", "github.com/google/go-cmp",
	},
	"storage/sqlite": {"storage", "storage/internal/bunstore", "storage/keyring", "storage/internal/disk", "engine", "bun", "modernc"},
	"storage/sqlite/backup": {
		"storage", "storage/sqlite", "storage/internal/bunstore", "storage/keyring", "storage/internal/disk", "blobstore/fileblob", "engine", "bun", "modernc",
	},
	"storage/transfer": {
		"storage", "storage/sqlite", "storage/postgres", "storage/internal/bunstore", "storage/keyring", "storage/internal/disk", "engine", "bun", "modernc", "pgx",
	},
	"storage/postgres":              {"storage", "storage/internal/bunstore", "storage/keyring", "storage/internal/disk", "engine", "bun", "pgx"},
	"storage/postgres/postgrestest": {"pgx"},

	"webhook/delivery/internal/schedule": {}, // pure: it has no clock and no I/O
	"webhook/internal/thirdparty":        {}, // tests only
}

// engine is the meaning of "engine" above: the domain and the delivery engine.
var engine = []string{
	"formsvc", "blobstore", "webhook", "webhook/egress", "webhook/delivery", "webhook/delivery/internal/schedule", "code.dny.dev/ssrf", "forms",
}

// leaves may import anything, and no package may import them.
var leaves = []string{"cmd/", "examples/", ".ci/"}

// thirdParty spells out the names used above: a library and what it needs.
var thirdParty = map[string][]string{
	"forms": {
		"github.com/google/uuid", "github.com/go-json-experiment/json", "github.com/hashicorp/golang-lru/v2", "golang.org/x/net/idna", "golang.org/x/text/secure/bidirule", "golang.org/x/text/transform",
		"golang.org/x/text/unicode/", "golang.org/x/crypto/argon2", "golang.org/x/crypto/blake2b", "golang.org/x/sys/cpu",
	},
	"bun": {
		"github.com/uptrace/bun", "github.com/jinzhu/inflection", "github.com/puzpuzpuz/xsync", "github.com/tmthrgd/go-hex",
		"github.com/vmihailenco/", "golang.org/x/sys",
	},
	"modernc": {
		"modernc.org/", "github.com/dustin/go-humanize", "github.com/google/uuid", "github.com/mattn/go-isatty",
		"github.com/ncruces/go-strftime", "github.com/remyoudompheng/bigfft", "golang.org/x/sys",
	},
	"minio": {
		"github.com/minio/", "github.com/klauspost/", "github.com/cespare/xxhash", "github.com/zeebo/xxh3", "github.com/rs/xid", "github.com/tinylib/msgp",
		"github.com/philhofer/fwd", "github.com/dustin/go-humanize", "github.com/google/uuid",
		"go.yaml.in/yaml", "golang.org/x/crypto", "golang.org/x/net", "golang.org/x/sys", "golang.org/x/text", "gopkg.in/ini.v1",
	},
	"otel": {
		"go.opentelemetry.io/", "github.com/go-logr/", "github.com/cespare/xxhash",
	},
	"prometheus": {
		"github.com/prometheus/", "github.com/beorn7/perks", "github.com/cespare/xxhash", "github.com/munnerz/goautoneg", "google.golang.org/protobuf",
		"go.yaml.in/yaml", "golang.org/x/sys",
	},
	"pgx": {
		"github.com/jackc/", "golang.org/x/text", "golang.org/x/sync", "golang.org/x/crypto",
	},
}

// TestArrows checks the direction of imports: domain and receiver kit at the bottom, databases and
// HTTP above them, programs on top.
func TestArrows(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(goList(t, "-f", `{{.ImportPath}} {{join .Deps " "}}`, module+"...")) {
		deps := strings.Fields(line)
		name := strings.TrimPrefix(deps[0], module)
		if isLeaf(name) {
			continue
		}
		allowed, ok := arrows[name]
		if !ok {
			t.Errorf("%s: a new package: add it to the arrows of this test", name)
			continue
		}
		for _, dep := range deps[1:] {
			if host, _, _ := strings.Cut(dep, "/"); strings.Contains(host, ".") && !allows(allowed, dep) { // not of the standard library
				t.Errorf("%s must not reach %s", name, dep)
			}
		}
	}
}

// TestReceiverNeedsNoOtherModule checks that a program that imports the receiver kit downloads nothing else, not even for the
// kit's own tests, which "go mod tidy" looks at.
func TestReceiverNeedsNoOtherModule(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(goList(t, "-test", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}",
		module+"webhook", module+"webhook/webhooktest")) {
		if dep := strings.TrimSpace(line); !strings.HasPrefix(dep, module+"webhook") {
			t.Errorf("the receiver kit and its tests must not reach %s", dep)
		}
	}
}

func isLeaf(name string) bool {
	return slices.ContainsFunc(leaves, func(l string) bool { return strings.HasPrefix(name+"/", l) })
}

func allows(allowed []string, dep string) bool {
	if slices.Contains(allowed, "engine") {
		allowed = slices.Concat(allowed, engine)
	}
	if own, ok := strings.CutPrefix(dep, module); ok {
		return slices.Contains(allowed, own)
	}
	return slices.ContainsFunc(allowed, func(a string) bool {
		for _, prefix := range append(thirdParty[a], a) {
			if strings.Contains(prefix, ".") && strings.HasPrefix(dep, prefix) {
				return true
			}
		}
		return false
	})
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}
