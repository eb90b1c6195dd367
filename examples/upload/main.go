// upload takes a file from a form in a browser, once for each Idempotency-Key.
// The page makes the key up when it shows the form. When it sends the form
// again, the browser writes it with another boundary, and an analytics cookie
// may have changed: neither counts, but the session's cookie does.
//
// Event source: a REST API with Lambda proxy integration for POST and OPTIONS,
// and multipart/form-data among its binary media types. An HTTP API and a
// Function URL answer OPTIONS and add the headers themselves if CORS is
// configured.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

type (
	request  = events.APIGatewayProxyRequest
	response = events.APIGatewayProxyResponse
	handler  = func(context.Context, request) (response, error)
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	key := keyfuncs.HeaderKey("Idempotency-Key", keyfuncs.SessionCookie[request]("session"))
	lambda.Start(withCORS(middleware.WithLock(key, handle)))
}

// withCORS is around the lock, so that the page can also read the answers that
// come from there: 400, 409 and 422.
func withCORS(next handler) handler {
	return func(ctx context.Context, r request) (response, error) {
		out := response{StatusCode: http.StatusNoContent}
		if r.HTTPMethod != http.MethodOptions {
			var err error
			if out, err = next(ctx, r); err != nil {
				return out, err
			}
		}
		if out.Headers == nil {
			out.Headers = map[string]string{}
		}
		out.Headers["Access-Control-Allow-Origin"] = "https://shop.example.com"
		out.Headers["Access-Control-Allow-Credentials"] = "true"
		out.Headers["Access-Control-Allow-Headers"] = "Content-Type, Idempotency-Key"
		out.Headers["Access-Control-Expose-Headers"] = "Idempotent-Replayed, Retry-After"
		return out, nil
	}
}

// handle is where your own work goes. Check who the session belongs to.
func handle(ctx context.Context, r request) (response, error) {
	name, content, err := file(r)
	if err != nil {
		return response{StatusCode: http.StatusBadRequest, Body: err.Error()}, nil
	}
	slog.InfoContext(ctx, "file stored", "name", name, "bytes", len(content))
	return response{StatusCode: http.StatusCreated}, nil
}

// file returns the name and the content of the file in the form.
func file(r request) (name string, content []byte, err error) {
	contentType := ""
	for name, value := range r.Headers { // in the case in which the client sent it
		if strings.EqualFold(name, "Content-Type") {
			contentType = value
		}
	}
	_, parameters, err := mime.ParseMediaType(contentType)
	if err != nil {
		return "", nil, err
	}
	var body io.Reader = strings.NewReader(r.Body)
	if r.IsBase64Encoded {
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	part, err := multipart.NewReader(body, parameters["boundary"]).NextPart()
	if err != nil {
		return "", nil, err
	}
	if part.FileName() == "" {
		return "", nil, errors.New("the form has no file")
	}
	content, err = io.ReadAll(part)
	return part.FileName(), content, err
}
