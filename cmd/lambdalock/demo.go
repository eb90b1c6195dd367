package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/demo"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/timeline"
)

type demoCmd struct {
	Environments int    `short:"n" default:"4" help:"How many execution environments; at least 4."`
	SVG          string `default:"lambdalock-demo.svg" placeholder:"FILE" help:"Where to draw the timeline (${default})."`
}

func (c *demoCmd) Run(ctx context.Context) error {
	if c.Environments < 4 {
		return fmt.Errorf("-n %d: the demo needs at least 4 environments", c.Environments)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// Written first, so that a path that cannot be written is known at once.
	f, err := os.Create(c.SVG)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	endpoint := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")
	if endpoint == "" {
		endpoint = "embedded in this program"
	}
	fmt.Printf("%d copies of a function that handles S3 uploads (wrapped: middleware.WithLock(key, handle)); lock table %s.\n"+
		"Events are delivered as Lambda does for S3, but retries come %d times sooner: 2 and 4 seconds after a failure, not 1 and 2 minutes.\n\n", c.Environments, endpoint, demo.Scale)
	report, err := demo.Run(ctx, demo.Config{
		Command: []string{self}, Environments: c.Environments,
		Progress: func(title string) { fmt.Println("  …", title) },
	})
	if err != nil {
		return err
	}
	fmt.Println()
	if err := show(report.Timeline, f); err != nil {
		return err
	}
	if err := report.Summary(os.Stdout); err != nil {
		return err
	}
	fmt.Println("The timeline as a picture:", c.SVG)
	if report.Err() != nil {
		return fmt.Errorf("the demo went wrong; the function said:\n%s", strings.Join(report.Said, "\n"))
	}
	return nil
}

func show(t timeline.Timeline, svg *os.File) error {
	width, _ := strconv.Atoi(os.Getenv("COLUMNS")) // 0 where unset: the default width
	terminal := false
	if info, err := os.Stdout.Stat(); err == nil {
		terminal = info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == ""
	}
	if err := t.Text(os.Stdout, width, terminal); err != nil {
		return err
	}
	if err := t.SVG(svg); err != nil {
		return err
	}
	return svg.Sync()
}
