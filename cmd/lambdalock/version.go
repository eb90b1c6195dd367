package main

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// version says which build this is, as far as the build knows.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "lambdalock, of an unknown build"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	var b strings.Builder
	fmt.Fprintf(&b, "lambdalock %s, %s %s/%s", info.Main.Version, info.GoVersion, settings["GOOS"], settings["GOARCH"])
	if revision := settings["vcs.revision"]; revision != "" {
		fmt.Fprintf(&b, ", revision %s of %s", revision, settings["vcs.time"])
	}
	if settings["vcs.modified"] == "true" {
		b.WriteString(", with local changes")
	}
	return b.String()
}
