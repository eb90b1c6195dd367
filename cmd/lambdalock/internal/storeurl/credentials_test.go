package storeurl

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// slow is a provider that takes some time, or asks for a code first.
type slow struct {
	takes   time.Duration
	ask     func() (string, error)
	sources []aws.CredentialSource
}

func (s slow) ProviderSources() []aws.CredentialSource { return s.sources }

func (s slow) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if s.ask != nil {
		if _, err := s.ask(); err != nil {
			return aws.Credentials{}, err
		}
	}
	select {
	case <-ctx.Done():
		return aws.Credentials{}, ctx.Err()
	case <-time.After(s.takes):
		return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
	}
}

// TestSlowCredentials: each source has its own time, and what came too late is
// named.
func TestSlowCredentials(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source aws.CredentialSource
		takes  time.Duration
		want   string
		named  bool
	}{
		"process":               {aws.CredentialSourceProcess, 59 * time.Second, "", true},
		"sso":                   {aws.CredentialSourceSSO, 59 * time.Second, "", true},
		"container":             {aws.CredentialSourceHTTP, 59 * time.Second, "", true},
		"metadata":              {aws.CredentialSourceIMDS, 1900 * time.Millisecond, "", false},
		"process that hangs":    {aws.CredentialSourceProcess, time.Hour, `from the profile "work" in 1m0s: check its credential_process`, true},
		"sso that hangs":        {aws.CredentialSourceSSO, time.Hour, `from the profile "work" in 1m0s: run aws sso login --profile work`, true},
		"container that hangs":  {aws.CredentialSourceHTTP, time.Hour, "AWS_CONTAINER_CREDENTIALS_FULL_URI or …_RELATIVE_URI names in 1m0s", true},
		"token that hangs":      {aws.CredentialSourceEnvVarsSTSWebIDToken, time.Hour, "AWS_WEB_IDENTITY_TOKEN_FILE", true},
		"role that hangs":       {aws.CredentialSourceSTSAssumeRole, time.Hour, `from the profile "work" in 1m0s`, true},
		"no metadata service":   {aws.CredentialSourceIMDS, time.Hour, "set AWS_PROFILE, or", false},
		"metadata of a machine": {aws.CredentialSourceIMDS, 2100 * time.Millisecond, "set AWS_PROFILE, or", false},
		"profile without any":   {aws.CredentialSourceIMDS, time.Hour, `from the profile "work": it names no source of credentials`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &search{profile: "work", named: c.named, limit: credentialsTimeout}
				err := s.wait(t.Context(), slow{takes: c.takes, sources: []aws.CredentialSource{c.source}})
				var config *driver.ConfigError
				switch {
				case c.want == "" && err != nil:
					t.Error(err)
				case c.want != "" && (!errors.As(err, &config) || !strings.Contains(err.Error(), c.want)):
					t.Errorf("got %v, want %q", err, c.want)
				}
			})
		})
	}
}

// TestCredentialsInterrupted: Ctrl-C ends a search, and its error does not
// blame the configuration.
func TestCredentialsInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := &search{profile: "work", limit: credentialsTimeout}
		if err := s.wait(ctx, slow{takes: time.Hour}); err != context.DeadlineExceeded {
			t.Errorf("got %v, want the cause of its end", err)
		}
	})
}

// TestCodeIsAskedForOnce: a person may look for the device for a while, and is
// not asked again beside a command that uses the terminal.
func TestCodeIsAskedForOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := &search{profile: "work", limit: credentialsTimeout, ask: func(profile string) (string, error) {
			time.Sleep(10 * time.Minute)
			asked++
			return "123456 of " + profile, nil
		}}
		provider := slow{takes: 59 * time.Second, ask: s.code}
		expect.OK(t, s.wait(t.Context(), provider))
		if _, err := provider.Retrieve(t.Context()); err == nil || !strings.Contains(err.Error(), "another MFA code") {
			t.Errorf("got %v, want that the session has ended", err)
		}
		if asked != 1 {
			t.Errorf("a person was asked %d times, want 1", asked)
		}
		s.ask = func(string) (string, error) { return "", wrong("there is no terminal") }
		if err := s.wait(t.Context(), provider); err == nil || err.Error() != wrong("there is no terminal").Error() {
			t.Errorf("got %v, want why there is no code", err)
		}
	})
}
