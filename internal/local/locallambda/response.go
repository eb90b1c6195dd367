package locallambda

import (
	"encoding/base64"
	"io"
	"net/http"
)

// response receives what the function returned. A response that is too large is
// read to its end as well, so that the runtime gets to see the refusal.
func (proc *process) response(w http.ResponseWriter, r *http.Request) {
	c, refused := proc.begin(r.PathValue("id"))
	if refused != nil {
		refused.write(w)
		return
	}
	payload, err := io.ReadAll(io.TeeReader(r.Body, c))
	streamed := c.in.Stream != nil || r.Header.Get("Lambda-Runtime-Function-Response-Mode") == "streaming"
	switch {
	case err != nil:
		proc.retract(c)
		cutShort.write(w)
	case !streamed && len(payload) > maxResponse:
		proc.finish(c, tooLarge())
		oversized.write(w)
	default:
		proc.finish(c, conclude(payload, r))
		accept(w)
	}
}

// conclude returns the ending for a response that has been read to its end. A
// runtime that fails after it has begun to stream says so in the trailers (see
// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-custom.html#runtimes-custom-response-streaming).
func conclude(payload []byte, r *http.Request) ending {
	errorType := r.Trailer.Get(headerErrorType)
	if errorType == "" {
		return ending{outcome: Succeeded, payload: payload, contentType: r.Header.Get("Content-Type")}
	}
	document, _ := base64.StdEncoding.DecodeString(r.Trailer.Get("Lambda-Runtime-Function-Error-Body"))
	return readError(document, errorType).endsWith(Failed)
}
