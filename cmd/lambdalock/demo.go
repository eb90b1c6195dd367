package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/demo"
)

type demoCmd struct {
	Environments int    `short:"n" default:"4" help:"How many execution environments; at least 4."`
	HTML         string `default:"lambdalock-demo.html" placeholder:"FILE" help:"Where to write the timeline as a page for a browser (${default})."`
	Width        int    `help:"How many columns to draw on; by default those of the terminal, or 100."`
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
	page, err := os.Create(c.HTML)
	if err != nil {
		return err
	}
	defer func() { _ = page.Close() }()
	endpoint := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")
	if endpoint == "" {
		endpoint = "embedded in this program"
	}
	fmt.Printf("One function for S3 uploads, %d environments.\nLock table: %s.\n\n", c.Environments, endpoint)
	report, err := demo.Run(ctx, demo.Config{
		Command: []string{self}, Environments: c.Environments,
		Progress: func(title string) { fmt.Println("…", title) },
	})
	if err != nil {
		return err
	}
	fmt.Println()
	color := term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == ""
	if err := report.Timeline.Text(os.Stdout, c.width(os.Stdout), color); err != nil {
		return err
	}
	if err := report.Timeline.HTML(page); err != nil {
		return err
	}
	if err := page.Sync(); err != nil {
		return err
	}
	fmt.Println("\nThe same as a page for a browser:", c.HTML)
	if report.Err() != nil {
		return fmt.Errorf("the demo went wrong; the function said:\n%s", strings.Join(report.Said, "\n"))
	}
	return nil
}

// width is how many columns there are to draw on.
func (c *demoCmd) width(out *os.File) int {
	if c.Width > 0 {
		return c.Width
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	if columns, _, err := term.GetSize(int(out.Fd())); err == nil && columns > 0 {
		return columns
	}
	return 100
}
