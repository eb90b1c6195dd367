package locallambda

import (
	"encoding/base64"
	"io"
	"net/http"
)

// readResponse reads what the function returned. It reads a response that is too large
// to its end as well, so that the runtime gets to see the refusal.
func readResponse(c *call, r *http.Request) (ending, *refusal) {
	payload, err := io.ReadAll(io.TeeReader(r.Body, c))
	streamed := c.in.Stream != nil || r.Header.Get("Lambda-Runtime-Function-Response-Mode") == "streaming"
	switch {
	case err != nil:
		return ending{}, cutShort
	case !streamed && len(payload) > maxResponse:
		return tooLarge(), oversized
	}
	// A runtime that fails after it has begun to stream says so in the trailers, see
	// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-custom.html#runtimes-custom-response-streaming.
	if errorType := r.Trailer.Get(headerErrorType); errorType != "" {
		document, _ := base64.StdEncoding.DecodeString(r.Trailer.Get("Lambda-Runtime-Function-Error-Body"))
		return decodeError(document, errorType).endsWith(Failed), nil
	}
	return ending{outcome: Succeeded, payload: payload, contentType: r.Header.Get("Content-Type")}, nil
}
