package examples_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// heavy has the modules that a program must not link unless it uses the feature.
var heavy = map[string]string{
	"SQLite":        "modernc.org/",
	"Postgres":      "github.com/jackc/pgx",
	"S3":            "github.com/minio/",
	"Prometheus":    "github.com/prometheus/",
	"OpenTelemetry": "go.opentelemetry.io/",
	"mail":          "github.com/wneessen/go-mail",
	"command lines": "github.com/alecthomas/kong",
	"bun":           "github.com/uptrace/bun",
	"OpenAPI":       "github.com/getkin/",
}

// TestProgramsLinkOnlyWhatTheyUse lists all packages that programs link.
func TestProgramsLinkOnlyWhatTheyUse(t *testing.T) {
	t.Parallel()
	const module = "github.com/formsvc/toolkit/"
	// The features of a server besides its store.
	server := []string{"httpx", "httpx/console", "httpx/intake", "webhook/delivery", "webhook/egress", "blobstore/fileblob", "storage/keyring"}
	for name, c := range map[string]struct{ packages, links []string }{
		"a server on Postgres":         {append(server, "storage/postgres"), []string{"Postgres", "bun"}},
		"a server on SQLite":           {append(server, "storage/sqlite"), []string{"SQLite", "bun"}},
		"a server in memory":           {append(server, "storage/memory"), nil},
		"a server on Postgres and S3":  {append(server, "storage/postgres", "blobstore/s3blob"), []string{"Postgres", "bun", "S3"}},
		"a server with metrics":        {append(server, "storage/memory", "formsvc/promformsvc"), []string{"Prometheus"}},
		"a receiver":                   {[]string{"webhook"}, nil},
		"examples/embed":               {[]string{"examples/embed"}, []string{"SQLite", "bun"}},
		"examples/embed-sqlite":        {[]string{"examples/embed-sqlite"}, []string{"SQLite", "bun"}},
		"examples/embed-postgres-tx":   {[]string{"examples/embed-postgres-tx"}, []string{"Postgres", "bun"}},
		"examples/host-auth":           {[]string{"examples/host-auth"}, []string{"Postgres", "bun"}},
		"tests of a store of your own": {[]string{"storage/storagetest", "blobstore/blobtest"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"list", "-deps"}
			for _, pkg := range c.packages {
				args = append(args, module+pkg)
			}
			out, err := exec.CommandContext(t.Context(), "go", args...).Output()
			if err != nil {
				t.Fatal(err)
			}
			deps := strings.Fields(string(out))
			for what, prefix := range heavy {
				linked := slices.ContainsFunc(deps, func(dep string) bool { return strings.HasPrefix(dep, prefix) })
				if want := slices.Contains(c.links, what); linked != want {
					t.Errorf("links %s: %t, want %t", what, linked, want)
				}
			}
		})
	}
}
