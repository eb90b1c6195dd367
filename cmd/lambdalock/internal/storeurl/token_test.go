package storeurl

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/azblobstore"
)

// cli is a credential that, like the Azure CLI, takes some time and ends with
// its caller.
type cli struct {
	takes time.Duration
	err   error
	runs  int
}

func (c *cli) GetToken(ctx context.Context, _ policy.TokenRequestOptions) (azcore.AccessToken, error) {
	c.runs++
	select {
	case <-ctx.Done():
		return azcore.AccessToken{}, ctx.Err()
	case <-time.After(c.takes):
		return azcore.AccessToken{Token: strconv.Itoa(c.runs), ExpiresOn: time.Now().Add(time.Hour)}, c.err
	}
}

// TestSlowToken: a request that does not wait for its token leaves it, or the
// reason why there is none, to the next one.
func TestSlowToken(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]error{"token": nil, "no token": errors.New("run az login")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				az := &cli{takes: 2500 * time.Millisecond, err: want}
				p := &patientCredential{TokenCredential: az}
				ask := func() (azcore.AccessToken, error) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					return p.GetToken(ctx, policy.TokenRequestOptions{})
				}
				for range 2 {
					if _, err := ask(); err != context.DeadlineExceeded {
						t.Errorf("got %v, want that its time is over", err)
					}
				}
				if token, err := ask(); token.Token != "1" || !errors.Is(err, want) || az.runs != 1 {
					t.Errorf("got %q, %v, and the CLI ran %d times", token.Token, err, az.runs)
				}
				az.takes = 0
				runs := 2
				if want == nil { // nobody comes for that one before it expires
					<-p.fetch(t.Context(), policy.TokenRequestOptions{}).done
					time.Sleep(2 * time.Hour)
					runs++
				}
				if token, err := ask(); token.Token != strconv.Itoa(runs) || !errors.Is(err, want) || az.runs != runs {
					t.Errorf("got %q, %v, and the CLI ran %d times, want a run of its own for the next token", token.Token, err, az.runs)
				}
			})
		})
	}
}

// TestTokenServiceFails: the store tells from the errors of azidentity, which
// it does not require, whether the request can be repeated. It always can if
// there was a token before: the Azure CLI does not say why there is none now.
func TestTokenServiceFails(t *testing.T) {
	t.Parallel()
	answered := func(status int) *cli {
		return &cli{err: &azidentity.AuthenticationFailedError{RawResponse: &http.Response{StatusCode: status, Body: http.NoBody}}}
	}
	for name, c := range map[string]struct {
		credential azcore.TokenCredential
		lasting    bool
	}{
		"refused":               {answered(http.StatusUnauthorized), true},
		"overloaded":            {answered(http.StatusServiceUnavailable), false},
		"unavailable":           {&cli{err: azidentity.NewCredentialUnavailableError("no identity")}, true},
		"unavailable, later on": {&patientCredential{TokenCredential: &cli{err: azidentity.NewCredentialUnavailableError("no network")}}, false},
	} {
		client := expect.Value(container.NewClient("https://account.blob.core.windows.net/c", c.credential, nil))(t)
		var e *driver.Error
		if err := azblobstore.New(client, "").Check(t.Context()); !errors.As(err, &e) || e.Lasting != c.lasting || !e.Unapplied {
			t.Errorf("%s: got %v, %+v", name, err, e)
		}
	}
}
