package main

// requests has the bugs in what happens around a handler that answers over
// HTTP, and in the keys of requests.
var requests = []mutant{
	{
		file: "middleware/http.go", breaks: "P5, F49", bug: "a server error completes the request",
		old: `return status >= http.StatusOK && status < http.StatusInternalServerError`,
		new: `return status >= http.StatusOK`,
		by:  "TestHTTPFailureRunsAgain",
	},
	{
		file: "middleware/http.go", breaks: "P5, F49", bug: "a response that is not final completes the request",
		old: `return status >= http.StatusOK && status < http.StatusInternalServerError`,
		new: `return status >= http.StatusContinue && status < http.StatusInternalServerError`,
		by:  "TestHTTPFailureRunsAgain",
	},
	{
		file: "middleware/http.go", breaks: "P5, F49", bug: "a client error that depends on who asks or when completes the request",
		old: `if repeatable[status] || status >= http.StatusBadRequest && hasRetryAfter(doc) {`,
		new: `if status == http.StatusTooManyRequests || status >= http.StatusBadRequest && hasRetryAfter(doc) {`,
		by:  "TestHTTPFailureRunsAgain",
	},
	{
		file: "middleware/http.go", breaks: "P5, F49", bug: "an expired token completes the request",
		old: `	http.StatusUnauthorized: true, `,
		new: `	`,
		by:  "TestHTTPFailureRunsAgain",
	},
	{
		file: "middleware/http.go", breaks: "P5, F49", bug: "a lock that is held inside the handler completes the request",
		old: `if repeatable[status] || status >= http.StatusBadRequest && hasRetryAfter(doc) {`,
		new: `if repeatable[status] || status >= http.StatusInternalServerError && hasRetryAfter(doc) {`,
		by:  "TestHTTPRetryAfter|TestHTTPNested",
	},
	{
		file: "keyfuncs/compose.go", breaks: "F37", bug: "EventFrom drops the fingerprint of a request",
		old: `, cmp.Or(k.Payload, other.Payload)
		if err`,
		new: `, k.Payload
		if err`,
		by: "TestEventFromKeepsThePayload",
	},
}
