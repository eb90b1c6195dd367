// Package storeurl opens the store that a URL names:
//
//	dynamodb://table[?region=…&endpoint=…]
//	redis://[user:password@]host[:port][/database]
//	rediss://…, the same with TLS; several with commas between are a quorum
//	valkey://…, valkeys://…, the same
//	unix://[user:password@]/path/of/the/socket[?db=…]
//	s3://bucket[/prefix][?region=…&endpoint=…&path-style=true]
//	azblob://account/container[/prefix][?endpoint=…]
//
// AWS credentials come from where the AWS CLI takes them; the code of an MFA
// device is asked for on the terminal. Those for Azure are
// in AZURE_STORAGE_CONNECTION_STRING or AZURE_STORAGE_KEY, or where the
// DefaultAzureCredential of azidentity finds them.
package storeurl

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Forms are the URLs that Open takes, for messages.
const Forms = "dynamodb://TABLE, redis://HOST:PORT, s3://BUCKET/PREFIX or azblob://ACCOUNT/CONTAINER"

// Open returns the store that the URL names. The error is a
// *driver.ConfigError that says what to change. It never shows a password.
// Except for credentials, nothing is looked up before the first request.
func Open(ctx context.Context, text string) (driver.Store, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return nil, wrong("the store's URL has no scheme: write " + Forms)
	}
	switch scheme = strings.ToLower(scheme); scheme {
	case "dynamodb":
		return openDynamoDB(ctx, rest)
	case "redis", "rediss", "valkey", "valkeys", "unix":
		return openRedis(text)
	case "s3":
		return openS3(ctx, text)
	case "azblob":
		return openAzure(ctx, text)
	}
	return nil, wrong("there is no store for %q: write %s", scheme+"://", Forms)
}

// wrong returns a mistake in the URL.
func wrong(format string, args ...any) error {
	return &driver.ConfigError{Reason: fmt.Sprintf(format, args...)}
}

// parameters are what follows the question mark of a URL.
type parameters map[string]string

// parse accepts the parameters of those names, each at most once. Messages
// show names only, because a value may be a secret, such as a signature.
func parse(query string, names ...string) (parameters, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, wrong("the store's URL has a malformed part after the question mark: write name=value, with & between two of them, and other characters percent-encoded")
	}
	p := parameters{}
	for name, v := range values {
		switch {
		case !slices.Contains(names, name):
			return nil, wrong("the store's URL has the parameter %q: use %s", name, list(names))
		case len(v) > 1:
			return nil, wrong("the store's URL has the parameter %q more than once", name)
		case v[0] == "":
			return nil, wrong("the store's URL has no value for %q: write %[1]s=VALUE, or leave it out", name)
		}
		p[name] = v[0]
	}
	return p, nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return "only " + strings.Join(names, ", ")
}

// checkEndpoint refuses what is not the address of a server.
func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return wrong("the parameter endpoint of the store's URL must be the address of a server, for example http://127.0.0.1:8000")
	}
	return nil
}
