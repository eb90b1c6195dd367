package s3store_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
)

const bucket = "locks"

// server is S3 in process, with a clock that a test can move. It implements
// http.RoundTripper, so that nothing needs a connection.
type server struct {
	handler http.Handler
	mu      sync.Mutex
	passed  time.Duration
	log     []string
	fault   func(*http.Request) *http.Response // may change the request, or answer it
	noDate  bool
}

var discard = slog.New(slog.DiscardHandler)

// newServer returns a server that has the bucket, and a client of it.
func newServer(t *testing.T) (*server, *s3.Client) {
	t.Helper()
	s := startServer(bucket)
	return s, s.client()
}

func startServer(bucket string) *server {
	s := &server{}
	backend := s3mem.New(s3mem.WithTimeSource(s))
	if err := backend.CreateBucket(bucket); err != nil {
		panic(err)
	}
	s.handler = gofakes3.New(backend, gofakes3.WithTimeSource(s), gofakes3.WithTimeSkewLimit(0), gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	return s
}

// client returns a client whose endpoint is not AWS's own.
func (s *server) client(options ...func(*s3.Options)) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String("http://s3.test"), UsePathStyle: true, Region: "eu-central-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
		HTTPClient: &http.Client{Transport: s},
		// As in a client from the default configuration.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	}, options...)
}

// Now implements gofakes3.TimeSource.
func (s *server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.passed).UTC()
}

// Since implements gofakes3.TimeSource.
func (s *server) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

func (s *server) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed += d
}

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	meet := s.fault
	s.log = append(s.log, strings.TrimSpace(r.Method+" "+r.URL.EscapedPath()+" "+condition(r.Header)))
	s.mu.Unlock()
	in := r.Clone(r.Context())
	if meet != nil {
		if response := meet(in); response != nil {
			return response, nil
		}
	}
	response, err := fault.InProcess{Handler: s.handler}.RoundTrip(in)
	if err != nil {
		return nil, err
	}
	response.Header.Set("Date", s.Now().Format(http.TimeFormat))
	if s.noDate {
		response.Header.Del("Date")
	}
	response.Request = r
	return response, nil
}

// condition returns a request's condition, without the version.
func condition(h http.Header) string {
	switch {
	case h.Get("If-None-Match") != "":
		return "if absent"
	case h.Get("If-Match") != "":
		return "if unchanged"
	}
	return ""
}

// requests returns the log, and empties it.
func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	return log
}

// answers makes a response of S3 or, without a code, of a proxy.
func answers(status int, code, message string) *http.Response {
	body := "<Error><Code>" + code + "</Code><Message>" + message + "</Message></Error>"
	if code == "" {
		body = message
	}
	return &http.Response{
		StatusCode: status, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/xml"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}},
	}
}
