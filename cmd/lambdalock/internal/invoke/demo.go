package invoke

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/demo"
)

// Demo is the command that shows what the locks do.
type Demo struct {
	Environments int    `short:"n" default:"4" help:"How many execution environments; at least 4."`
	HTML         string `default:"lambdalock-demo.html" placeholder:"FILE" help:"Where to write the timeline as a page for a browser (${default})."`
	Store        string `placeholder:"URL" env:"LAMBDALOCK_STORE" help:"Where the locks are: ${storeForms}. Default: a DynamoDB table that is embedded in this program."`
	drawing
}

// Help returns what --help adds.
func (c *Demo) Help() string {
	return `Examples:
  lambdalock demo
  lambdalock demo -n 8 --store redis://localhost:6379 --html demo.html`
}

// Run runs the demo.
func (c *Demo) Run(ctx context.Context) error {
	if c.Environments < 4 {
		return fmt.Errorf("-n %d: the demo needs at least 4 environments", c.Environments)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// Written first, so that a path that cannot be written is known immediately.
	page, err := os.Create(c.HTML)
	if err != nil {
		return err
	}
	defer func() { _ = page.Close() }()
	fmt.Printf("One function for S3 uploads, %d environments.\n%s.\n\n", c.Environments, c.where())
	report, err := demo.Run(ctx, demo.Config{
		Command: []string{self}, Environments: c.Environments, Store: c.Store,
		Progress: func(title string) { fmt.Println("…", title) },
	})
	if err != nil {
		return err
	}
	if err := report.Timeline.HTML(page); err != nil {
		return err
	}
	if err := page.Sync(); err != nil {
		return err
	}
	fmt.Println()
	if err := c.text(os.Stdout, report.Timeline); err != nil {
		return err
	}
	fmt.Println("\nThe same as a page for a browser:", c.HTML)
	if report.Err() != nil {
		return fmt.Errorf("the demo went wrong: %w\nThe function said:\n%s", report.Err(), strings.Join(report.Said, "\n"))
	}
	return nil
}

// where says where the locks are.
func (c *Demo) where() string {
	switch endpoint := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"); {
	case c.Store != "":
		return "Lock store: " + public(c.Store)
	case endpoint != "":
		return "Lock table: " + endpoint
	}
	return "Lock table: embedded in this program"
}

// public returns what may be shown of a store's URL, or of several with commas
// between. What a URL has before the host or after the path may be secret, and
// any part of a malformed one, of which the demo will say what is wrong.
func public(store string) string {
	var servers []string
	for text := range strings.SplitSeq(store, ",") {
		u, err := url.Parse(text)
		if err != nil || u.Scheme == "" || u.Opaque != "" || u.Host != "" && u.Hostname() == "" || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") {
			scheme, _, ok := strings.Cut(store, "://")
			if !ok || strings.ContainsAny(scheme, "@:,") {
				return "a URL without a scheme"
			}
			return scheme + "://"
		}
		servers = append(servers, u.Scheme+"://"+u.Host+u.Path)
	}
	return strings.Join(servers, ", ")
}
