package main

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// release returns the version of this program's module, or "devel".
func release() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// build describes how this program was built, as one line for people and logs.
func build() string {
	parts := []string{"formsvc " + release()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings { // revision, time, and whether the checkout had changes
			if name, ok := strings.CutPrefix(s.Key, "vcs."); ok {
				parts = append(parts, name+" "+s.Value)
			}
		}
	}
	return strings.Join(append(parts, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH), ", ")
}
