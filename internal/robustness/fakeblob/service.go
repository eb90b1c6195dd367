// Package fakeblob is the part of Azure Blob Storage that azblobstore uses, in
// memory, for tests: conditional writes, leases, lists, and a clock that can be
// moved. The tests of azblobstore compare it with Azurite.
package fakeblob

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Service is a storage account. It serves HTTP like Azurite, at
// /ACCOUNT/CONTAINER/BLOB, or like Azure, at /CONTAINER/BLOB of a host that
// names the account, and accepts any signature.
type Service struct {
	// Blind makes it ignore conditions, as some servers do.
	Blind bool

	mu         sync.Mutex
	offset     time.Duration
	containers map[string]map[string]*blob
	etags      int
	requests   []string
}

// blob is a blob and the last lease on it.
type blob struct {
	body     []byte
	etag     string
	modified time.Time
	lease    lease
}

// New returns an account that has one empty container, called "c".
func New() *Service {
	return &Service{containers: map[string]map[string]*blob{"c": {}}}
}

// Advance moves the service's clock.
func (s *Service) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += d
}

// Requests returns the operations so far: put, get, delete, list, and the
// actions of leases.
func (s *Service) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

const azure = ".blob.core.windows.net"

// operation returns the name of a request, and the names that it is about.
func operation(r *http.Request) (op, containerName, blobName string) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	if !strings.HasSuffix(r.URL.Host, azure) { // begins with the account
		_, path, _ = strings.Cut(path, "/")
	}
	containerName, blobName, _ = strings.Cut(path, "/")
	switch {
	case r.URL.Query().Get("comp") == "lease":
		op = r.Header.Get("x-ms-lease-action")
	case r.URL.Query().Get("comp") == "list":
		op = "list"
	case r.URL.Query().Get("restype") == "container" && r.Method == http.MethodDelete:
		op = "drop"
	case r.URL.Query().Get("restype") == "container":
		op = "create"
	default:
		op = strings.ToLower(r.Method)
	}
	return op, containerName, blobName
}

// ServeHTTP implements [http.Handler].
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().Add(s.offset)
	w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
	op, containerName, blobName := operation(r)
	s.requests = append(s.requests, op)
	blobs, ok := s.containers[containerName]
	switch {
	case op == "create" && ok:
		fail(w, http.StatusConflict, "ContainerAlreadyExists")
	case op == "create":
		s.containers[containerName] = map[string]*blob{}
		w.WriteHeader(http.StatusCreated)
	case !ok:
		fail(w, http.StatusNotFound, "ContainerNotFound")
	case op == "drop":
		delete(s.containers, containerName)
		w.WriteHeader(http.StatusAccepted)
	case op == "list":
		list(w, r, blobs)
	case op == "put":
		s.put(w, r, blobs, blobName, body, now)
	case blobs[blobName] == nil:
		fail(w, http.StatusNotFound, "BlobNotFound")
	case op == "get":
		get(w, blobs[blobName])
	case op == "head":
		blobs[blobName].head(w)
		w.Header().Set("x-ms-lease-state", blobs[blobName].lease.state(now))
	case op == "delete":
		if b := blobs[blobName]; b.writable(w, r, now) {
			delete(blobs, blobName)
			w.WriteHeader(http.StatusAccepted)
		}
	default:
		blobs[blobName].leaseAction(w, r, op, now)
	}
}

func (s *Service) put(w http.ResponseWriter, r *http.Request, blobs map[string]*blob, name string, body []byte, now time.Time) {
	old := blobs[name]
	if match := r.Header.Get("If-Match"); match != "" && !s.Blind && (old == nil || old.etag != match) {
		fail(w, http.StatusPreconditionFailed, "ConditionNotMet")
		return
	}
	if old != nil && r.Header.Get("If-None-Match") == "*" && !s.Blind {
		fail(w, http.StatusConflict, "BlobAlreadyExists")
		return
	}
	fresh := &blob{}
	if old != nil {
		if !old.writable(w, r, now) {
			return
		}
		fresh.lease = old.lease
		if !fresh.lease.locked(now) {
			fresh.lease = lease{} // a write ends what is left of a lease
		}
	}
	s.etags++
	fresh.body, fresh.etag, fresh.modified = body, fmt.Sprintf(`"0x%X"`, s.etags), now
	blobs[name] = fresh
	fresh.head(w)
	w.WriteHeader(http.StatusCreated)
}

func (b *blob) head(w http.ResponseWriter) {
	w.Header().Set("ETag", b.etag)
	w.Header().Set("Last-Modified", b.modified.UTC().Format(http.TimeFormat))
}

func get(w http.ResponseWriter, b *blob) {
	b.head(w)
	w.Header().Set("Content-Length", strconv.Itoa(len(b.body)))
	_, _ = w.Write(b.body)
}

func list(w http.ResponseWriter, r *http.Request, blobs map[string]*blob) {
	type item struct{ Name string }
	var page struct {
		XMLName    xml.Name `xml:"EnumerationResults"`
		Items      []item   `xml:"Blobs>Blob"`
		NextMarker string
	}
	q := r.URL.Query()
	var names []string
	for name := range blobs {
		if strings.HasPrefix(name, q.Get("prefix")) && name > q.Get("marker") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	const pageSize = 3 // the service has 5,000; every list takes several pages
	for i, name := range names {
		if i == pageSize {
			page.NextMarker = names[i-1]
			break
		}
		page.Items = append(page.Items, item{name})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(page)
}

// fail answers like the service, whose XML begins with a byte order mark.
func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("x-ms-error-code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code><Message>This is %s.\nRequestId:1\nTime:now</Message></Error>", code, code)
}
