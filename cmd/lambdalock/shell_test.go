package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// TestBashCompletion asks a real bash.
func TestBashCompletion(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("this test needs bash")
	}
	script := command(t, nil, "completion", "bash").Stdout
	complete := func(words ...string) []string {
		t.Helper()
		const ask = `COMP_WORDS=(lambdalock "$@"); COMP_CWORD=$#; _lambdalock; printf '%s\n' "${COMPREPLY[@]}"`
		c := exec.CommandContext(t.Context(), bash, append([]string{"--norc", "-c", script + ask, "bash"}, words...)...)
		c.Dir = t.TempDir()
		out := expect.Value(c.Output())(t)
		return slices.Compact(strings.Fields(string(out))) // a program may be in PATH twice
	}
	var commands []string
	for _, leaf := range parser(t).Model.Leaves(true) {
		commands = append(commands, leaf.Name)
		var flags []string
		for _, group := range leaf.AllFlags(true) {
			for _, flag := range group {
				flags = append(flags, "--"+flag.Name)
			}
		}
		if got := complete(leaf.Name, "--"); !slices.Equal(got, flags) {
			t.Errorf("flags of %s: %q, want %q", leaf.Name, got, flags)
		}
	}
	if got := complete(""); !slices.Equal(got, commands) {
		t.Errorf("commands: %q, want %q", got, commands)
	}
	for _, c := range []struct{ words, want []string }{
		{[]string{"e"}, []string{"exec", "explain"}},
		{[]string{"--v"}, []string{"--version"}},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish"}},
		{[]string{"exec", "--key", "x", "--w"}, []string{"--wait"}},
		{[]string{"exec", "--key", "x", "--", "basenam"}, []string{"basename"}},
		{[]string{"exec", "--key", "x", "--", "basename", "--s"}, nil}, // the flags of another program
		{[]string{"exec", ""}, nil},                                    // files
		{[]string{"invoke", "--source", "sq"}, []string{"sqs", "sqs-fifo"}},
		{[]string{"invoke", "--source", "="}, []string{"sqs", "sqs-fifo", "kinesis", "s3", "custom-bus", "api"}},
		{[]string{"invoke", "--source", "=", "k"}, []string{"kinesis"}},
		{[]string{"invoke", "--html", ""}, nil},
	} {
		if got := complete(c.words...); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
}

// TestShellTexts: zsh, fish and man(1) are told of every command, argument and
// flag.
func TestShellTexts(t *testing.T) {
	t.Parallel()
	zsh := command(t, nil, "completion", "zsh")
	zsh.Expect(t, 0, "bashcompinit", command(t, nil, "completion", "bash").Stdout)
	fish, man := command(t, nil, "completion", "fish"), command(t, nil, "man")
	fish.Expect(t, 0, `-a exec -d 'Run a command`, ` completion' -f -a 'bash zsh fish '`, ` invoke' -l source -x -a ' sqs `, ` -l environments -s n -r -d`, `The function\'s timeout`)
	man.Expect(t, 0, "\n.nf\n  lambdalock exec \\-\\-key nightly", "\\fB\\-n, \\-\\-environments\\fR=\\fI", "(\\fB$LAMBDALOCK_STORE\\fR)", "\n.SS exec ")
	sections := strings.Split(strings.ReplaceAll(man.Stdout, `\-`, `-`), "\n.SS ")
	for i, leaf := range parser(t).Model.Leaves(true) {
		section := sections[i+1]
		for _, argument := range leaf.Positional {
			if want := ".TP\n\\fI" + argument.Name + "\\fR\n" + argument.Help; !strings.Contains(section, want) {
				t.Errorf("the manual of %s lacks %q", leaf.Name, want)
			}
		}
		for _, flag := range leaf.Flags {
			if !strings.Contains(section, "--"+flag.Name+"\\fR") || !strings.Contains(section, "\n"+flag.Help) {
				t.Errorf("the manual of %s lacks --%s", leaf.Name, flag.Name)
			}
			if line := " " + leaf.Name + "' -l " + flag.Name + " "; !strings.Contains(fish.Stdout, line) {
				t.Errorf("the completion of fish lacks %q", line)
			}
		}
		if !strings.Contains(section, leaf.Help) || !strings.HasPrefix(section, leaf.Name+" ") {
			t.Errorf("the manual of %s begins %q", leaf.Name, section[:50])
		}
	}
	for _, line := range regexp.MustCompile(`(?m)^[.'].*`).FindAllString(man.Stdout, -1) {
		if !regexp.MustCompile(`^\.(TH|SH|SS|TP|B|I|PP|br|nf|fi)( .*)?$`).MatchString(line) {
			t.Errorf("the manual has the request %q", line)
		}
	}
}
