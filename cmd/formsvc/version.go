package main

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"
)

// A build describes how this program was built.
type build struct {
	Version  string `json:"version"`  // of the module, or "devel"
	Revision string `json:"revision"` // "" if it was built without version control
	Time     string `json:"time"`     // of the revision
	Modified bool   `json:"modified"` // whether the checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// thisBuild returns the build information in the program.
func thisBuild() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// release returns the version of this program, or "" for a development build.
func release() string {
	if b := thisBuild(); b.Version != "devel" {
		return b.Version
	}
	return ""
}

// String returns the build as one line for people.
func (b build) String() string {
	parts := []string{"formsvc " + b.Version}
	if b.Revision != "" {
		parts = append(parts, "revision "+b.Revision, b.Time)
	}
	if b.Modified {
		parts = append(parts, "modified")
	}
	return strings.Join(append(parts, b.Go, b.Platform), ", ")
}

// LogValue returns the build for a log.
func (b build) LogValue() slog.Value {
	return slog.GroupValue(slog.String("version", b.Version), slog.String("revision", b.Revision), slog.String("revisionTime", b.Time),
		slog.Bool("modified", b.Modified), slog.String("go", b.Go))
}

type versionCmd struct{ output }

// Run prints the build.
func (c *versionCmd) Run(std streams) error {
	if c.JSON {
		return records(c.output, std.out, "", []build{thisBuild()}, nil)
	}
	_, err := fmt.Fprintln(std.out, thisBuild())
	return err
}

// versionFlag is the version command as a flag.
type versionFlag bool

// BeforeReset prints the build and ends the program.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	_, err := fmt.Fprintln(app.Stdout, thisBuild())
	app.Exit(0)
	return err
}
