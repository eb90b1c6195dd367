//go:build !demo

package storeurl

import (
	"context"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/azblobstore"
)

// Where credentials for Azure are looked for, in this order, before
// azidentity's own places.
const (
	connectionVariable = "AZURE_STORAGE_CONNECTION_STRING"
	keyVariable        = "AZURE_STORAGE_KEY"
)

// azureTimeout is how long the search for credentials may take. The Azure CLI,
// which may be asked, needs some seconds.
const azureTimeout = 15 * time.Second

// The names of accounts and containers.
// https://learn.microsoft.com/en-us/azure/storage/common/storage-account-overview#storage-account-name
// https://learn.microsoft.com/en-us/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata
var (
	accountName   = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
	containerName = regexp.MustCompile(`^(\$root|[a-z0-9](-?[a-z0-9]){2,62})$`)
)

// azurePlace is what a URL says of a place in Azure.
type azurePlace struct{ account, container, prefix, endpoint string }

func openAzure(ctx context.Context, text string) (driver.Store, error) {
	place, err := parseAzure(text)
	if err != nil {
		return nil, err
	}
	client, err := place.client(ctx)
	if err != nil {
		return nil, err
	}
	return azblobstore.New(client, place.prefix), nil
}

func parseAzure(text string) (azurePlace, error) {
	const form = "write azblob://ACCOUNT/CONTAINER[/PREFIX]"
	u, err := url.Parse(text)
	if err != nil || u.Fragment != "" {
		return azurePlace{}, wrong("the store's URL is malformed: %s, with other characters percent-encoded", form)
	}
	if u.User != nil {
		return azurePlace{}, wrong("the store's URL has credentials: leave them out, and set %s or %s", connectionVariable, keyVariable)
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	switch {
	case u.Host == "":
		return azurePlace{}, wrong("the store's URL names no account: %s", form)
	case !accountName.MatchString(u.Host):
		return azurePlace{}, wrong("%q is not the name of a storage account, which has 3 to 24 small letters and digits: %s", u.Host, form)
	case name == "":
		return azurePlace{}, wrong("the store's URL names no container: %s", form)
	case !containerName.MatchString(name):
		return azurePlace{}, wrong("%q is not the name of a container: %s", name, form)
	}
	p, err := parse(u.RawQuery, "endpoint")
	if err != nil {
		return azurePlace{}, err
	}
	if err := checkEndpoint(p["endpoint"]); err != nil {
		return azurePlace{}, err
	}
	return azurePlace{account: u.Host, container: name, prefix: folder(rest), endpoint: p["endpoint"]}, nil
}

// folder returns the prefix of the names in a folder.
func folder(path string) string {
	if path == "" || strings.HasSuffix(path, "/") {
		return path
	}
	return path + "/"
}

func (p azurePlace) client(ctx context.Context) (*container.Client, error) {
	if connection := os.Getenv(connectionVariable); connection != "" {
		if account := connectionAccount(connection); account != "" && account != p.account {
			return nil, wrong("the store's URL names the account %q, and %s is for %q", p.account, connectionVariable, account)
		}
		if p.endpoint != "" {
			return nil, wrong("the store's URL has an endpoint, and so has %s: leave one out", connectionVariable)
		}
		client, err := container.NewClientFromConnectionString(connection, p.container, nil)
		if err != nil {
			return nil, wrong("%s is malformed: copy it again from the account's access keys", connectionVariable)
		}
		return client, nil
	}
	if key := os.Getenv(keyVariable); key != "" {
		shared, err := container.NewSharedKeyCredential(p.account, key)
		if err != nil {
			return nil, wrong("%s is not a key: copy it again from the account's access keys", keyVariable)
		}
		return made(container.NewClientWithSharedKeyCredential(p.url(), shared, nil))
	}
	credential, err := tokenCredential(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		// The error has a paragraph for each of the places.
		return nil, wrong("no Azure credentials: set %s or %s, or log in with az login; AZURE_SDK_GO_LOGGING=all shows what was tried", connectionVariable, keyVariable)
	}
	return made(container.NewClient(p.url(), credential, nil))
}

// made returns a client, or the mistake that the SDK found in its URL.
func made(client *container.Client, err error) (*container.Client, error) {
	if err != nil {
		return nil, &driver.ConfigError{Reason: "the store's URL cannot be used", Err: err}
	}
	return client, nil
}

// url is the container's URL. An endpoint is that of the blob service,
// which for Azurite has the account as its path.
func (p azurePlace) url() string {
	endpoint := p.endpoint
	if endpoint == "" {
		endpoint = "https://" + p.account + ".blob.core.windows.net"
	}
	return strings.TrimSuffix(endpoint, "/") + "/" + p.container
}

// connectionAccount returns the account of a connection string, or "" if it
// names none. One with a shared access signature names it in the address of
// the service only, see
// https://learn.microsoft.com/en-us/azure/storage/common/storage-configure-connection-string.
func connectionAccount(connection string) string {
	var endpoint string
	for part := range strings.SplitSeq(connection, ";") {
		name, value, _ := strings.Cut(part, "=")
		switch name = strings.TrimSpace(name); {
		case strings.EqualFold(name, "AccountName"):
			return value
		case strings.EqualFold(name, "BlobEndpoint"):
			endpoint = value
		}
	}
	u, err := url.Parse(strings.TrimSpace(endpoint))
	if err != nil {
		return ""
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		return path // as with the emulator
	}
	account, domain, _ := strings.Cut(u.Hostname(), ".")
	if !strings.HasPrefix(domain, "blob.") && !strings.Contains(domain, ".blob.") {
		return "" // a domain of one's own
	}
	return strings.TrimSuffix(account, "-secondary")
}

// tokenCredential finds credentials before the first request of a lock, which
// would not wait for the Azure CLI.
func tokenCredential(ctx context.Context) (azcore.TokenCredential, error) {
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, azureTimeout)
	defer cancel()
	token, err := credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{"https://storage.azure.com/.default"}})
	if err != nil {
		return nil, err
	}
	first := &fetch{done: make(chan struct{}), token: token}
	close(first.done)
	return &patientCredential{TokenCredential: credential, latest: first}, nil
}

// fetch is a request for a token. Its answer is there once done is closed.
type fetch struct {
	done  chan struct{}
	token azcore.AccessToken
	err   error
}

// expired reports whether nobody came for the token in time.
func (f *fetch) expired() bool {
	select {
	case <-f.done:
		return f.err == nil && !time.Now().Before(f.token.ExpiresOn)
	default:
		return false
	}
}

// patientCredential asks for a token for longer than a request of a lock waits,
// which would end the Azure CLI each time. The next request gets the answer for
// which the one before did not wait.
type patientCredential struct {
	azcore.TokenCredential
	mu     sync.Mutex
	latest *fetch // nil if somebody has its answer
}

// GetToken implements azcore.TokenCredential.
func (p *patientCredential) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	f := p.fetch(ctx, options)
	select {
	case <-f.done:
	case <-ctx.Done():
		return azcore.AccessToken{}, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest == f {
		p.latest = nil
	}
	return f.token, f.err
}

// fetch returns the latest request for a token, or begins one.
func (p *patientCredential) fetch(ctx context.Context, options policy.TokenRequestOptions) *fetch {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest != nil && !p.latest.expired() {
		return p.latest
	}
	f := &fetch{done: make(chan struct{})}
	p.latest = f
	go func() {
		defer close(f.done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), azureTimeout)
		defer cancel()
		if f.token, f.err = p.TokenCredential.GetToken(ctx, options); f.err != nil {
			f.err = passing{f.err}
		}
	}()
	return f
}

// passing is the error of a credential that has given a token before. As it is
// a net.Error, the store lets the request be repeated.
type passing struct{ error }

func (p passing) Unwrap() error   { return p.error }
func (p passing) Timeout() bool   { return false }
func (p passing) Temporary() bool { return true }
