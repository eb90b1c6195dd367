//go:build linux

package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/commandtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
)

// TestQuestionInTerminal: a question is seen wherever the output goes.
func TestQuestionInTerminal(t *testing.T) {
	t.Parallel()
	table := commandtest.NewTable(t, "locks")
	rowtest.Acquire(t, table.Store, "the night shift", time.Hour, lock.Key{Name: "k"}, func(o *lock.Options) { o.Namespace = "" })
	for _, c := range []struct {
		name, answer, want string
		status             int
	}{
		{"no", "\n", "nothing was changed", 1},
		{"end of input", "\x04", "nothing was changed", 1},
		{"interrupt", "\x03", "interrupted", 130},
		{"yes", "y\n", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			terminal, user := commandtest.OpenTerminal(t)
			p := prepare(t, table.Env, "release", "k")
			var out strings.Builder
			p.Stdin, p.Stdout, p.Stderr = terminal, &out, terminal
			p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			expect.Must(t, p.Start())
			_ = terminal.Close()
			screen := bufio.NewReader(user)
			if question, err := screen.ReadString(']'); question != "Release /k? [y/N]" {
				t.Fatalf("the question is %q (%v)", question, err)
			}
			expect.Value(user.WriteString(c.answer))(t)
			rest, _ := io.ReadAll(screen) // a terminal that is closed has an error
			_ = p.Wait()
			if got := p.ProcessState.ExitCode(); got != c.status || !strings.Contains(string(rest), c.want) {
				t.Errorf("status %d, want %d with %q: %q", got, c.status, c.want, rest)
			}
			if released := strings.Contains(out.String(), "Released /k."); released != (c.status == 0) {
				t.Errorf("it printed\n%s", out.String())
			}
		})
	}
}

// TestCodeOfADevice: a profile with an MFA device works, and its code is asked
// for once, whatever standard input is.
func TestCodeOfADevice(t *testing.T) {
	t.Parallel()
	table := commandtest.NewTable(t, "locks")
	var codes []string
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		codes = append(codes, r.FormValue("TokenCode"))
		_, _ = io.WriteString(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>`+
			`<AccessKeyId>id</AccessKeyId><SecretAccessKey>x</SecretAccessKey><SessionToken>x</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration>`+
			`</Credentials></AssumeRoleResult></AssumeRoleResponse>`)
	}))
	t.Cleanup(sts.Close)
	config := file(t, "config", "[profile base]\naws_access_key_id=id\naws_secret_access_key=x\n"+
		"[profile work]\nregion=eu-central-1\nsource_profile=base\nrole_arn=arn:aws:iam::111122223333:role/admin\nmfa_serial=arn:aws:iam::111122223333:mfa/me\n")
	env := []string{"AWS_CONFIG_FILE=" + config, "AWS_PROFILE=work", "AWS_ENDPOINT_URL_STS=" + sts.URL}
	args := []string{"exec", "--store", "dynamodb://locks?endpoint=" + table.URL, "--key", "k", "--", "echo", "ran"}

	alone := commandtest.Prepare(t, env, args...)
	commandtest.Detach(alone)
	commandtest.Execute(t, alone).Expect(t, 64, `the AWS profile "work" needs the code of an MFA device, and there is no terminal to ask on`)

	terminal, user := commandtest.OpenTerminal(t)
	p := prepare(t, env, args...)
	var out strings.Builder
	p.Stdout, p.Stderr = &out, terminal
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	expect.Must(t, p.Start())
	_ = terminal.Close()
	screen := bufio.NewReader(user)
	if question, err := screen.ReadString(':'); question != `MFA code for the AWS profile "work":` {
		t.Fatalf("the question is %q (%v)", question, err)
	}
	expect.Value(user.WriteString("123456\n"))(t)
	rest, _ := io.ReadAll(screen) // a terminal that is closed has an error
	if err := p.Wait(); err != nil || out.String() != "ran\n" {
		t.Errorf("%v: %q, %q", err, out.String(), rest)
	}
	if !slices.Equal(codes, []string{"123456"}) {
		t.Errorf("the codes %q were sent", codes)
	}
}
