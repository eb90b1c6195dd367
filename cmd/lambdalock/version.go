package main

import (
	"fmt"
	"runtime/debug"
)

// version describes this build, as far as the build knows.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "lambdalock, of an unknown build"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	text := fmt.Sprintf("lambdalock %s, %s %s/%s", info.Main.Version, info.GoVersion, settings["GOOS"], settings["GOARCH"])
	if revision := settings["vcs.revision"]; revision != "" {
		text += fmt.Sprintf(", revision %s of %s", revision, settings["vcs.time"])
	}
	if settings["vcs.modified"] == "true" {
		text += ", with local changes"
	}
	return text
}
