package locallambda

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
)

var errTooLarge = errors.New("the response is too large")

// response receives what the function returned.
func (proc *process) response(w http.ResponseWriter, r *http.Request) {
	c, refused := proc.begin(r.PathValue("id"))
	if refused != nil {
		refused.write(w)
		return
	}
	limit := maxResponse
	if c.in.Stream != nil || r.Header.Get("Lambda-Runtime-Function-Response-Mode") == "streaming" {
		limit = 0
	}
	payload, err := c.receive(r.Body, limit)
	switch {
	case errors.Is(err, errTooLarge):
		proc.finish(c, tooLarge())
		oversized.write(w)
	case err != nil:
		proc.retract(c)
		cutShort.write(w)
	default:
		proc.finish(c, conclude(payload, r))
		accept(w)
	}
}

// receive reads a response to its end and passes each piece on as it comes. A
// response above limit bytes, unless that is zero, is read to its end as well, so
// that the runtime gets to see the refusal.
func (c *call) receive(body io.Reader, limit int) ([]byte, error) {
	payload := []byte{}
	piece := make([]byte, 32<<10)
	for {
		n, err := body.Read(piece)
		if n > 0 {
			c.stream(piece[:n])
			payload = append(payload, piece[:n]...)
		}
		if limit > 0 && len(payload) > limit {
			if _, err := io.Copy(io.Discard, body); err != nil {
				return nil, err
			}
			return nil, errTooLarge
		}
		if err == io.EOF {
			return payload, nil
		}
		if err != nil {
			return nil, err
		}
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
