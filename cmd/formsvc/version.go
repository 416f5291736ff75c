package main

import (
	"runtime"
	"runtime/debug"
	"strings"
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
	set := make(map[string]string)
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	b.Revision, b.Time, b.Modified = set["vcs.revision"], set["vcs.time"], set["vcs.modified"] == "true"
	return b
}

// String returns the build as one line for people and logs.
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
