package integration_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/lambdalock/lambdalock/integration/servers"
)

// gateway is a local server in front of DynamoDB or a bucket of an account. So
// the tests, their processes and the proxies between them need not know
// credentials, addresses or names: what is "locks" there is
// TABLE-26LETTERS-locks in the account, with other letters for each gateway.
type gateway struct {
	*awsAccount
	service string // as requests are signed for it
	space   string // the beginning of the names
	server  *httptest.Server

	mu     sync.Mutex
	tables []string // that may exist
}

func (a *awsAccount) gateway(service string) *gateway {
	g := &gateway{awsAccount: a, service: service, space: a.table + "-" + rand.Text() + "-"}
	g.server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(*httputil.ProxyRequest) {}, // the transport does it, because it may fail
		Transport: g,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil { // the client still waits
				fmt.Println("gateway:", err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gateways = append(a.gateways, g)
	return g
}

// forTest serves for the length of a test.
func (g *gateway) forTest(tb testing.TB) servers.Server {
	tb.Cleanup(func() {
		if err := g.end(context.Background()); err != nil {
			tb.Error("not all was deleted: ", err)
		}
	})
	return servers.Server{Name: "the account", Endpoint: g.server.URL}
}

// end deletes what was created through the gateway.
func (g *gateway) end(ctx context.Context) error {
	g.server.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if g.service == "s3" {
		return g.deleteObjects(ctx, g.space, time.Now().Add(leftAfter))
	}
	var err error
	for _, name := range g.tables {
		err = errors.Join(err, g.deleteTable(ctx, name))
	}
	return err
}

// RoundTrip implements http.RoundTripper.
func (g *gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	kind, units := "", 1
	if g.service == "s3" {
		kind, err = g.toObject(r)
	} else {
		kind, units, body, err = g.toTable(r, body)
	}
	if err != nil {
		return nil, err
	}
	if err := g.sign(r, body); err != nil {
		return nil, err
	}
	resp, err := g.transport.RoundTrip(r)
	size := len(body)
	if err == nil {
		size = max(size, int(resp.ContentLength))
	}
	g.bill.add(kind, units, size)
	if err == nil && kind == "LIST" {
		err = g.fromList(resp)
	}
	return resp, err
}

// sign gives the request its body, and a signature for it.
func (g *gateway) sign(r *http.Request, body []byte) error {
	credentials, err := g.cfg.Credentials.Retrieve(r.Context())
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = http.NoBody, int64(len(body))
	if len(body) > 0 { // or it would be sent in chunks
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	r.Host = r.URL.Host
	hash := sha256.Sum256(body)
	digest := hex.EncodeToString(hash[:])
	r.Header.Del("Authorization")
	if g.service == "s3" {
		r.Header.Set("X-Amz-Content-Sha256", digest)
	}
	return v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).
		SignHTTP(r.Context(), credentials, r, digest, g.service, g.cfg.Region, time.Now())
}

// operations of DynamoDB that the tests send, and what each is on the bill. One
// that names its tables in another way would reach those of others.
var operations = map[string]string{
	"CreateTable": "", "DescribeTable": "", "DescribeTimeToLive": "", "UpdateTimeToLive": "", "DescribeEndpoints": "",
	"UpdateItem": "write", "PutItem": "write", "BatchExecuteStatement": "write", "TransactWriteItems": "transaction",
	"GetItem": "read", "Scan": "read",
}

// beforeTable is what comes before the name of a table. The quotes of a value
// are escaped.
var beforeTable = regexp.MustCompile(`"TableName":"|"Statement":"(?:UPDATE|INSERT INTO) \\"`)

// toTable changes a request to one for the tables of the gateway. It returns
// how many items it names.
func (g *gateway) toTable(r *http.Request, body []byte) (kind string, items int, _ []byte, _ error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	kind, ok := operations[operation]
	if !ok {
		return "", 0, nil, fmt.Errorf("%s is none of the operations that tests may send to an account", operation)
	}
	*r.URL = *g.tablesAt
	items = len(beforeTable.FindAll(body, -1))
	body = beforeTable.ReplaceAll(body, []byte("${0}"+g.space))
	if operation == "CreateTable" {
		var in struct{ TableName string }
		if err := json.Unmarshal(body, &in); err != nil {
			return "", 0, nil, err
		}
		g.mu.Lock()
		g.tables = append(g.tables, in.TableName)
		g.mu.Unlock()
		body = append(fmt.Appendf(nil, `{"Tags":[{"Key":%q,"Value":%q}],`, ownTag, g.table), body[1:]...)
	}
	return kind, items, body, nil
}

// toObject changes a request to one for the objects of the gateway.
func (g *gateway) toObject(r *http.Request) (kind string, err error) {
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.EscapedPath(), "/"+bucket), "/")
	query := r.URL.Query()
	*r.URL = *g.objectsAt
	if key == "" && query.Get("list-type") == "2" {
		query.Set("prefix", g.space+query.Get("prefix"))
		r.URL.RawQuery = query.Encode()
		return "LIST", nil
	}
	if key == "" || r.Method != http.MethodGet && r.Method != http.MethodPut {
		return "", fmt.Errorf("%s %s is none of the requests that tests may send to an account", r.Method, key)
	}
	r.URL.RawQuery = query.Encode()
	r.URL.RawPath = g.objectsAt.EscapedPath() + "/" + g.space + key
	r.URL.Path, err = url.PathUnescape(r.URL.RawPath)
	return r.Method, err
}

// fromList takes the beginning of the keys from a list.
func (g *gateway) fromList(resp *http.Response) error {
	list, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	list = bytes.ReplaceAll(list, []byte("<Key>"+g.space), []byte("<Key>"))
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(list)), int64(len(list))
	resp.Header.Set("Content-Length", strconv.Itoa(len(list)))
	return nil
}
