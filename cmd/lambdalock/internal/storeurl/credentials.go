package storeurl

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"

	"github.com/lambdalock/lambdalock/lock/driver"
)

const (
	// credentialsTimeout is how long credentials may take: a program that asks for
	// a fingerprint, a role behind a role. The SDK gives a program as long.
	credentialsTimeout = processcreds.DefaultTimeout
	// metadataTimeout is how long the last place to look may take, the metadata
	// service, which exists in EC2 only.
	metadataTimeout = 2 * time.Second
)

// search looks for credentials.
type search struct {
	profile string // whose they are, as AWS_PROFILE names it
	named   bool   // it does
	limit   time.Duration
	ask     func(profile string) (string, error)

	mu     sync.Mutex
	timer  *time.Timer // ends the search; nil when it is over
	noCode error       // why there is no code of an MFA device
}

// found has the providers of earlier searches by the variables that they depend
// on, so that neither a program nor a person is asked twice: the code of a
// device is good for one request.
var found sync.Map

func variables() string {
	var all []string
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "AWS_") {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// load returns the SDK's configuration with credentials that are there.
func load(ctx context.Context, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	named := cmp.Or(os.Getenv("AWS_PROFILE"), os.Getenv("AWS_DEFAULT_PROFILE"))
	s := &search{
		profile: cmp.Or(named, config.DefaultSharedConfigProfile), named: named != "",
		limit: credentialsTimeout, ask: askCode,
	}
	environment := variables()
	earlier, _ := found.Load(environment)
	if earlier != nil {
		options = append(options, config.WithCredentialsProvider(earlier.(aws.CredentialsProvider)))
	}
	cfg, err := config.LoadDefaultConfig(ctx, append(options,
		config.WithAssumeRoleCredentialOptions(func(o *stscreds.AssumeRoleOptions) { o.TokenProvider = s.code }),
		// Ours ends first, and says which profile it is.
		config.WithProcessCredentialOptions(func(o *processcreds.Options) { o.Timeout = 2 * credentialsTimeout }),
	)...)
	switch {
	case err != nil:
		return aws.Config{}, &driver.ConfigError{Reason: "the AWS configuration cannot be read", Err: err}
	case cfg.Region == "":
		return aws.Config{}, wrong("no AWS Region: set AWS_REGION, or add ?region=REGION to the store's URL")
	case earlier != nil:
		return cfg, nil
	}
	if err := s.wait(ctx, cfg.Credentials); err != nil {
		return aws.Config{}, err
	}
	found.Store(environment, cfg.Credentials)
	return cfg, nil
}

// errLate is why a search ends that took too long.
var errLate = errors.New("the time is up")

// wait waits for the credentials. The time that a person takes does not count.
func (s *search) wait(ctx context.Context, provider aws.CredentialsProvider) error {
	var sources []aws.CredentialSource
	if p, ok := provider.(aws.CredentialProviderSource); ok {
		sources = p.ProviderSources()
	}
	if onlyMetadata(sources) {
		s.limit = metadataTimeout
	}
	searching, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	s.timer = time.AfterFunc(s.limit, func() { cancel(errLate) })
	s.mu.Unlock()
	_, err := provider.Retrieve(searching)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	s.timer = nil
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.noCode != nil:
		return s.noCode
	}
	return s.explain(sources, err, context.Cause(searching) == errLate)
}

// code asks for the code of an MFA device, while there is a search. Later there
// may be a command that reads from the terminal.
func (s *search) code() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		return "", fmt.Errorf("the session of the AWS profile %q has ended, and the next one needs another MFA code: start again, with longer duration_seconds if the role allows it", s.profile)
	}
	s.timer.Stop()
	s.mu.Unlock()
	code, err := s.ask(s.profile)
	s.mu.Lock()
	if s.timer != nil {
		s.timer.Reset(s.limit)
	}
	s.noCode = err
	return code, err
}

// askCode asks the person at the terminal, whatever standard input is.
func askCode(profile string) (string, error) {
	input, output := "/dev/tty", "/dev/tty"
	if runtime.GOOS == "windows" {
		input, output = "CONIN$", "CONOUT$"
	}
	in, err := os.Open(input)
	if err != nil {
		return "", wrong("the AWS profile %q needs the code of an MFA device, and there is no terminal to ask on: use a profile without mfa_serial, or put the credentials of a session (aws sts get-session-token) into the AWS variables", profile)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(output, os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = out.Close() }()
	if _, err := fmt.Fprintf(out, "MFA code for the AWS profile %s: ", strconv.Quote(profile)); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	code := strings.TrimSpace(line)
	if code == "" && (err == nil || errors.Is(err, io.EOF)) {
		err = wrong("no MFA code was given for the AWS profile %q", profile)
	}
	return code, err
}

func onlyMetadata(sources []aws.CredentialSource) bool {
	return slices.Equal(sources, []aws.CredentialSource{aws.CredentialSourceIMDS})
}

// explain says where there are no credentials, and what to do.
func (s *search) explain(sources []aws.CredentialSource, err error, late bool) error {
	where, advice := fmt.Sprintf("the profile %q", s.profile), ""
	for _, source := range sources {
		switch source {
		case aws.CredentialSourceProcess:
			advice = ": check its credential_process"
		case aws.CredentialSourceSSO, aws.CredentialSourceSSOLegacy:
			advice = ": run aws sso login --profile " + s.profile
		case aws.CredentialSourceLogin:
			advice = ": run aws login --profile " + s.profile
		case aws.CredentialSourceHTTP:
			where = "the endpoint that AWS_CONTAINER_CREDENTIALS_FULL_URI or …_RELATIVE_URI names"
		case aws.CredentialSourceEnvVarsSTSWebIDToken:
			where = "the token and role that AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN name"
		}
	}
	switch {
	case !onlyMetadata(sources):
	case s.named:
		advice, late = ": it names no source of credentials, and the machine has none", false
	default:
		where, advice, late = "the environment, a profile or the machine", ": set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", false
	}
	if late {
		return wrong("no AWS credentials from %s in %v%s", where, s.limit, advice)
	}
	return &driver.ConfigError{Reason: fmt.Sprintf("no AWS credentials from %s%s", where, advice), Err: withoutOutput(err)}
}

// withoutOutput returns an error without what a credential_process has printed,
// which may be a secret.
func withoutOutput(err error) error {
	if p := (*processcreds.ProviderError)(nil); errors.As(err, &p) && strings.Contains(p.Error(), "process output:") {
		return errors.New("it does not print one JSON object as https://docs.aws.amazon.com/sdkref/latest/guide/feature-process-credentials.html says")
	}
	return err
}
