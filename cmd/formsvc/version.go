package main

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// build describes how this program was built, as one line for people and logs.
func build() string {
	version := "devel"
	var parts []string
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" && info.Main.Version != "(devel)" {
			version = info.Main.Version
		}
		for _, s := range info.Settings { // revision, time, and whether the checkout had changes
			if name, ok := strings.CutPrefix(s.Key, "vcs."); ok {
				parts = append(parts, name+" "+s.Value)
			}
		}
	}
	return strings.Join(slices.Concat([]string{"formsvc " + version}, parts, []string{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}), ", ")
}
