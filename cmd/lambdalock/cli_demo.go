//go:build demo

package main

import (
	"context"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/invoke"
)

// cli is what make demo builds: its first build is what a newcomer waits for.
type cli struct {
	Demo invoke.Demo `cmd:""`
}

func newCLI(context.Context) *cli { return &cli{} }
