package storeurl_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/storeurl"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
)

// Not a secret: Azurite, the emulator, documents it.
const azuriteKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

// setAzure sets no credentials, and keeps the SDK from looking for any in
// the network.
func setAzure(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{
		"AZURE_STORAGE_CONNECTION_STRING": "", "AZURE_STORAGE_KEY": "", "AZURE_CLIENT_ID": "", "AZURE_TENANT_ID": "", "AZURE_CLIENT_SECRET": "",
		"AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential",
	} {
		t.Setenv(name, value)
	}
}

// TestAzure shows which requests a URL leads to, on a service that refuses
// them.
func TestAzure(t *testing.T) {
	requests := make(chan *http.Request, 1)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case requests <- r:
		default:
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(service.Close)
	connection := "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=" + azuriteKey + ";BlobEndpoint=" + service.URL + "/devstoreaccount1"
	endpoint := "?endpoint=" + service.URL + "/devstoreaccount1"
	for name, c := range map[string]struct {
		variable, value, url, path string
	}{
		"key":               {"AZURE_STORAGE_KEY", azuriteKey, "azblob://devstoreaccount1/locks" + endpoint, "/devstoreaccount1/locks/"},
		"key, prefix":       {"AZURE_STORAGE_KEY", azuriteKey, "azblob://devstoreaccount1/locks/a/b" + endpoint, "/devstoreaccount1/locks/a/b/"},
		"key, prefix/":      {"AZURE_STORAGE_KEY", azuriteKey, "azblob://devstoreaccount1/locks/a/" + endpoint, "/devstoreaccount1/locks/a/"},
		"key, root":         {"AZURE_STORAGE_KEY", azuriteKey, "azblob://devstoreaccount1/$root" + endpoint, "/devstoreaccount1/$root/"},
		"connection string": {"AZURE_STORAGE_CONNECTION_STRING", connection, "azblob://devstoreaccount1/locks/a", "/devstoreaccount1/locks/a/"},
	} {
		t.Run(name, func(t *testing.T) {
			setAzure(t)
			t.Setenv(c.variable, c.value)
			store := expect.Value(storeurl.Open(t.Context(), c.url))(t)
			if lk, err := lockerOf(t, store).Acquire(t.Context(), lock.Key{Name: "k"}); err == nil {
				t.Errorf("got a lock: %v", lk)
			}
			r := <-requests
			if !strings.HasPrefix(r.URL.Path, c.path) || strings.Count(r.URL.Path, "/") != strings.Count(c.path, "/") {
				t.Errorf("%s %s, want a blob in %s", r.Method, r.URL.Path, c.path)
			}
			if got := r.Header.Get("Authorization"); !strings.HasPrefix(got, "SharedKey devstoreaccount1:") {
				t.Errorf("Authorization: %q", got)
			}
		})
	}
}

func TestAzureCredentials(t *testing.T) {
	const account = "AccountName=account;AccountKey=" + azuriteKey + ";EndpointSuffix=core.windows.net"
	const signature = "SharedAccessSignature=sv=2022-11-02&sig=secret"
	for name, c := range map[string]struct{ variable, value, url, want string }{
		"none":              {"AZURE_STORAGE_KEY", "", "azblob://account/locks", "az login"},
		"no place":          {"AZURE_TOKEN_CREDENTIALS", "secret", "azblob://account/locks", "az login"},
		"key":               {"AZURE_STORAGE_KEY", "secret!", "azblob://account/locks", "AZURE_STORAGE_KEY is not a key"},
		"connection string": {"AZURE_STORAGE_CONNECTION_STRING", "secret", "azblob://account/locks", "is malformed"},
		"other account":     {"AZURE_STORAGE_CONNECTION_STRING", account, "azblob://other/locks", `"other", and AZURE_STORAGE_CONNECTION_STRING is for "account"`},
		"other SAS account": {"AZURE_STORAGE_CONNECTION_STRING", "BlobEndpoint=https://account.blob.core.windows.net/;" + signature, "azblob://other/locks", `"other", and AZURE_STORAGE_CONNECTION_STRING is for "account"`},
		"other SAS zone":    {"AZURE_STORAGE_CONNECTION_STRING", signature + ";BlobEndpoint=https://account.z01.blob.storage.azure.net", "azblob://other/locks", `"other", and AZURE_STORAGE_CONNECTION_STRING is for "account"`},
		"other SAS path":    {"AZURE_STORAGE_CONNECTION_STRING", "BlobEndpoint=http://127.0.0.1:10000/account;" + signature, "azblob://other/locks", `"other", and AZURE_STORAGE_CONNECTION_STRING is for "account"`},
		"two endpoints":     {"AZURE_STORAGE_CONNECTION_STRING", account, "azblob://account/locks?endpoint=http://127.0.0.1:1", "leave one out"},
	} {
		t.Run(name, func(t *testing.T) {
			setAzure(t)
			t.Setenv(c.variable, c.value)
			_, err := storeurl.Open(t.Context(), c.url)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), azuriteKey) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("a secret, or more than one line: %v", err)
			}
		})
	}
}

// TestAzureCredentialsInterrupted: Ctrl-C ends a search, and its error does not
// blame the configuration.
func TestAzureCredentialsInterrupted(t *testing.T) {
	setAzure(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	cancel(interrupted)
	if _, err := storeurl.Open(ctx, "azblob://account/locks"); err != interrupted {
		t.Errorf("got %v, want the cause of its end", err)
	}
}

// TestAzureSignatures: connection strings with a shared access signature are
// taken for the account that they are for, and for a domain of one's own.
func TestAzureSignatures(t *testing.T) {
	for name, endpoint := range map[string]string{
		"account":   "https://account.blob.core.windows.net",
		"secondary": "https://account-secondary.blob.core.windows.net/",
		"zone":      "https://account.z01.blob.storage.azure.net",
		"domain":    "https://files.example.com",
		"emulator":  "http://127.0.0.1:10000/account",
	} {
		t.Run(name, func(t *testing.T) {
			setAzure(t)
			t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "BlobEndpoint="+endpoint+";SharedAccessSignature=sv=2022-11-02&sig=c2ln")
			if _, err := storeurl.Open(t.Context(), "azblob://account/locks"); err != nil {
				t.Error(err)
			}
		})
	}
}
