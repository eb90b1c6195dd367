package keyfuncs_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/keyfuncs"
)

func posted(contentType, encoding, body string) httpRequest {
	e := plainHTTP()
	e.Headers["content-type"], e.Headers["content-encoding"] = contentType, encoding
	e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(body)), true
	return e
}

// form is a form as a browser sends it, with a boundary and line ends.
func form(boundary, end string, parts ...string) httpRequest {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("--" + boundary + end + `Content-Disposition: form-data; name="f"` + end + end + p + end)
	}
	return posted("multipart/form-data; boundary="+boundary, "", b.String()+"--"+boundary+"--"+end)
}

func zipped(t *testing.T, text string, at time.Time) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.ModTime = at
	if _, err := w.Write([]byte(text)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSameContent shows in what two bodies of the same content may differ, and
// that nothing else is lost.
func TestSameContent(t *testing.T) {
	t.Parallel()
	now := time.Unix(1795687201, 0)
	for name, c := range map[string]struct {
		first, second httpRequest
		same          bool
	}{
		"a new boundary":             {form("AaB03x", "\r\n", "17 euros", "note"), form("----WebKit7", "\r\n", "17 euros", "note"), true},
		"short lines":                {form("a", "\n", "17"), form("b", "\n", "17"), true},
		"quoted":                     {form("a", "\r\n", "17"), posted(`Multipart/Form-Data; Boundary="b"`, "", "--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n17\r\n--b--\r\n"), true},
		"another part":               {form("a", "\r\n", "17"), form("a", "\r\n", "18"), false},
		"parts in another order":     {form("a", "\r\n", "17", "18"), form("b", "\r\n", "18", "17"), false},
		"one part or two":            {form("a", "\r\n", "17", "18"), form("b", "\r\n", "17\r\n18"), false},
		"a part in a part":           {form("a", "\r\n", "17", "18"), form("b", "\r\n", "17\r\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n18"), false},
		"a delimiter in the text":    {form("a", "\r\n", "--a"), form("b", "\r\n", "--b"), true},
		"not multipart":              {posted("text/plain; boundary=a", "", "--a--"), posted("text/plain; boundary=b", "", "--b--"), false},
		"no boundary":                {posted("multipart/form-data", "", "--a--"), posted("multipart/form-data", "", "--b--"), false},
		"an empty boundary":          {posted(`multipart/form-data; boundary=""`, "", "--a"), posted(`multipart/form-data; boundary=""`, "", "--b"), false},
		"a broken type":              {posted("multipart/form-data; boundary", "", "--a"), posted("multipart/form-data; boundary", "", "--b"), false},
		"compressed later":           {posted("", "gzip", zipped(t, "17", now)), posted("", "GZIP", zipped(t, "17", now.Add(time.Second))), true},
		"another text, compressed":   {posted("", "gzip", zipped(t, "17", now)), posted("", "gzip", zipped(t, "18", now)), false},
		"a file that is compressed":  {posted("application/gzip", "", zipped(t, "17", now)), posted("application/gzip", "", zipped(t, "17", now.Add(time.Second))), false},
		"compressed, by an old name": {posted("", "x-gzip", zipped(t, "17", now)), posted("", "X-Gzip", zipped(t, "17", now.Add(time.Second))), true},
		"only said to be compressed": {posted("", "gzip", "\x1f\x8b\x00\x001234a"), posted("", "gzip", "\x1f\x8b\x00\x005678a"), false},
		"cut off":                    {posted("", "gzip", "\x1f\x8b\x08"), posted("", "gzip", "\x1f\x8b\x08\x00"), false},
		"members in another order":   {posted("application/json", "", `{"a":1,"b":2}`), posted("application/json", "", `{"b":2,"a":1}`), false},
		"fields in another order":    {posted("application/x-www-form-urlencoded", "", "a=1&b=2"), posted("application/x-www-form-urlencoded", "", "b=2&a=1"), false},
		"the same, encoded by base64": {posted("application/json", "", `{"a":1}`), func() httpRequest {
			e := posted("application/json", "", "")
			e.Body, e.IsBase64Encoded = `{"a":1}`, false
			return e
		}(), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := keyOf(t, keyfuncs.IdempotencyKey[httpRequest], c.first), keyOf(t, keyfuncs.IdempotencyKey[httpRequest], c.second)
			if (first == second) != c.same || first.Name != second.Name {
				t.Errorf("%+v and %+v, want the same: %t", first, second, c.same)
			}
		})
	}
}
