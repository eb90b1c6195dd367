package main

import (
	"embed"
	"strings"
	"text/template"

	"github.com/alecthomas/kong"
)

//go:embed shell
var shellFiles embed.FS

// describe prints the commands with their flags, as --help knows them, in the
// language of a shell or of man(1).
func describe(app *kong.Context, language string) error {
	templates, err := template.New("").
		Funcs(template.FuncMap{"quote": quote, "roff": roff}).
		ParseFS(shellFiles, "shell/*")
	if err != nil {
		return err
	}
	return templates.ExecuteTemplate(app.Stdout, language, app.Model)
}

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help returns what --help adds.
func (c *completionCmd) Help() string {
	return `For bash and zsh, write source <(lambdalock completion bash) into ~/.bashrc, or source <(lambdalock completion zsh) into ~/.zshrc. Or save it where the shell looks for completions.

Examples:
  lambdalock completion bash > ~/.local/share/bash-completion/completions/lambdalock
  lambdalock completion fish > ~/.config/fish/completions/lambdalock.fish`
}

func (c *completionCmd) Run(app *kong.Context) error {
	return describe(app, c.Shell)
}

type manCmd struct{}

// Help returns what --help adds.
func (c *manCmd) Help() string {
	return `It has the help of every command.

Examples:
  lambdalock man | man -l -
  lambdalock man > /usr/local/share/man/man1/lambdalock.1`
}

func (c *manCmd) Run(app *kong.Context) error {
	return describe(app, "man")
}

// quote returns text as one word of fish.
func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// roff returns text as the source of a manual page. Lines stay lines, and
// indented ones are not filled.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case line == "":
			lines[i] = ".PP"
		case strings.HasPrefix(line, "  "):
			lines[i] = ".nf\n" + line + "\n.fi"
		case i > 0:
			lines[i] = ".br\n" + line
		}
	}
	return strings.Join(lines, "\n")
}
