package keyfuncs

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"mime"
	"strings"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
)

// contentDigest returns a digest of a body that is the same when a client sends
// the same content again. Of two forms of a body, the bytes differ each time:
//
//   - a multipart body has a new boundary
//   - gzip writes the time into its header (RFC 1952)
//
// Neither counts. Of every other form the bytes count.
func (r request) contentDigest(body string) string {
	if encoding := r.header("Content-Encoding"); strings.EqualFold(encoding, "gzip") || strings.EqualFold(encoding, "x-gzip") {
		if strings.HasPrefix(body, "\x1f\x8b\x08") && len(body) > 8 {
			return keyparts.Digest("gzip " + body[:4] + body[8:])
		}
	}
	kind, params, err := mime.ParseMediaType(r.header("Content-Type"))
	if boundary := params["boundary"]; err == nil && boundary != "" && strings.HasPrefix(kind, "multipart/") {
		return multipartDigest("\n"+body, "\n--"+boundary)
	}
	return keyparts.Digest(body)
}

// multipartDigest returns a digest of what is between the delimiters. Each part
// is hashed with its length, so different lists of parts have different
// digests. The client chooses how many parts there are, so none costs memory.
func multipartDigest(body, delimiter string) string {
	h := sha256.New()
	w := bufio.NewWriter(h) // a hash takes everything, so there is no error
	var length [binary.MaxVarintLen64]byte
	for part := range strings.SplitSeq(body, delimiter) {
		_, _ = w.Write(binary.AppendUvarint(length[:0], uint64(len(part))))
		_, _ = w.WriteString(part)
	}
	_ = w.Flush()
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// header returns the value of a header, or "" unless it has exactly one.
func (r request) header(name string) string {
	if v := values(name, r.headers, r.multi); len(v) == 1 {
		return v[0]
	}
	return ""
}
