package main

// http has the bugs in handlers behind HTTP, and what a caller is answered.
var http = []mutant{
	{
		file: "middleware/reply.go", breaks: "P6", bug: "a request that did not run gets an answer without a status, where the type any hides that it is one",
		old: `, a.action == skip && p != nil:`,
		new: `:`,
		by:  "TestHTTPSkipBehindAny",
	},
	{
		file: "middleware/stream.go", breaks: "F49", bug: "a failed response that is streamed inside a type of the user's completes the request",
		old: `streamingResponse(embedded(v)); head != nil {`,
		new: `streamingResponse(embedded(v)); head != nil && false {`,
		by:  "TestEmbeddedStreamBehindAny",
	},
	{
		file: "middleware/stream.go", breaks: "P5, F35", bug: "a stream that broke off completes the event",
		old: `if err == io.EOF && s.completes {`,
		new: `if s.completes {`,
		by:  "TestStreamThatFails|TestStreamClosedBeforeItsEndIsNotCompleted",
	},
	{
		file: "middleware/stream.go", breaks: "P5, F35", bug: "an error that wraps io.EOF completes the event",
		old: `if err == io.EOF && s.completes {`,
		new: `if errors.Is(err, io.EOF) && s.completes {`,
		by:  "TestStreamThatFails",
	},
	{
		file: "middleware/stream.go", breaks: "P4, F35", bug: "a stream that is closed before its end keeps the name held",
		old: `	defer s.end(io.ErrUnexpectedEOF) // does`,
		new: `	_ = s.end // does`,
		by:  "TestStreamClosedBeforeItsEndIsNotCompleted",
	},
	{
		file: "middleware/stream.go", breaks: "P4, F35", bug: "a body that panics keeps the name held",
		old: `	err = errBodyPanicked
	defer`,
		new: `	defer`,
		by:  "TestStreamThatPanics",
	},
	{
		file: "middleware/stream.go", breaks: "P1, P5", bug: "a stream that cannot be encoded completes the event before its body is read",
		old: `		return nil, errNotJSON
`,
		new: `		s.end(io.EOF)
		return nil, errNotJSON
`,
		by: "TestStreamThatBreaksOffInTheRuntime",
	},
	{
		file: "middleware/stream.go", breaks: "F35", bug: "the last bytes of a stream are not stored if they come with its end",
		old: `	s.keep(p, n)
	return`,
		new: `	if err == nil {
		s.keep(p, n)
	}
	return`,
		by: "TestLastBytesWithTheEndOfAStream",
	},
	{
		file: "middleware/stream.go", breaks: "P1", bug: "the lock ends before the body is closed",
		old: `	defer s.end(io.ErrUnexpectedEOF) // does`,
		new: `	s.end(io.ErrUnexpectedEOF) // does`,
		by:  "TestStreamHoldsTheLockWhileItCloses",
	},
	{
		file: "middleware/reply.go", breaks: "P7", bug: "an error in which OnError wraps its own is swallowed",
		old: `		case err != a.err:`,
		new: `		case !errors.Is(err, a.err):`,
		by:  "TestHTTPOptionsWin",
	},
	{
		file: "middleware/reply.go", breaks: "P5", bug: "a response that was recognised by its status is not replayed",
		old: `	r.judge(a.result)
`,
		new: ``,
		by:  "TestHTTPByValue",
	},
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
		file: "internal/event/eventkind/http.go", breaks: "F49", bug: "a response type that the user embedded is not one",
		old: `find(t, responses).gateway`,
		new: `knownAs(deref(t), responses).gateway`,
		by:  "TestBadRequest", in: "middleware",
	},
	{
		file: "middleware/http.go", breaks: "F49", bug: "every map is a response",
		old: ` || result.Kind() == reflect.Map || result == rawType`,
		new: ` || result == rawType`,
		by:  "TestNotOverHTTP",
	},
	{
		file: "middleware/http.go", breaks: "F49", bug: "a status in a result means nothing if types and payload are silent",
		old: `	h.byValue = h.gateway == eventkind.NoGateway && `,
		new: `	h.byValue = h.gateway != eventkind.NoGateway && `,
		by:  "TestHTTPByValue",
	},
	{
		file: "middleware/http.go", breaks: "F49", bug: "a status in the result for a queue is a response",
		old: `	return strings.HasPrefix(path, "github.com/aws/") || path`,
		new: `	return path`,
		by:  "TestNotOverHTTP",
	},
	{
		file: "middleware/http.go", breaks: "F49", bug: "a status in types of the user's means nothing",
		old: `		h.gateway = eventkind.Payload2 // the result`,
		new: `		h.gateway = eventkind.NoGateway // the result`,
		by:  "TestHTTPFailureRunsAgain",
	},
	{
		file: "middleware/http.go", breaks: "F49", bug: "Respond(nil) answers a request without a status",
		old: ` && s.held.action == respond && isNull(s.held.response) {`,
		new: ` && s.held.action == respond && s.failOpen {`,
		by:  "TestWrongUseOverHTTP",
	},
	{
		file: "middleware/http.go", breaks: "F49", bug: "a nil map answers a request without a status",
		old: ` && string(b) == "null"`,
		new: ` && string(b) == "null" && response == nil`,
		by:  "TestWrongUseOverHTTP",
	},
	{
		file: "middleware/http.go", breaks: "F35", bug: "a response that cannot be read back is replayed without a status",
		old: `members["statusCode"] != nil`,
		new: `members["statusCode"] == nil && false`,
		by:  "TestUnreadableResponse",
	},
	{
		file: "middleware/result.go", breaks: "P5", bug: "numbers of a replayed result lose their digits",
		old: `	d.UseNumber()
`,
		new: ``,
		by:  "TestReplayOfAnything",
	},
	{
		file: "middleware/result.go", breaks: "P5", bug: "a replayed result is escaped for HTML",
		old: `	e.SetEscapeHTML(false)
`,
		new: ``,
		by:  "TestReplayOfRawJSON",
	},
	{
		file: "middleware/problem.go", breaks: "P7", bug: "the client of a request in progress is not told when to try again",
		old: `if p.retryAfter > 0 {`,
		new: `if p.retryAfter > 100 {`,
		by:  "TestHTTPRetryAfter|TestHTTPInProgress",
	},
	{
		file: "middleware/problem.go", breaks: "P7", bug: "a mistake in the function is blamed on the client",
		old: `errors.As(err, &noKey) && noKey.Client:`,
		new: `errors.As(err, &noKey):`,
		by:  "TestOperatorsMistakeIsNotABadRequest",
	},
}
