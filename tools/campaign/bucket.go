package main

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// What happens to the bucket that runners leave their shards in.
const (
	bucketGood    = "good"
	bucketGone    = "refuses connections"
	bucketMissing = "missing"
	bucketDenies  = "denies the end"
	bucketCut     = "object cut"
	bucketFlip    = "object flipped"
	bucketLost    = "object missing"
)

func bucketFault(what, reason string) func(*rand.Rand, *scenario) {
	return func(_ *rand.Rand, sc *scenario) {
		sc.Bucket = what
		want := invalid(reason)
		sc.want = &want
	}
}

// bucketEnv lets a runner write to it.
var bucketEnv = []string{"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true"}

// A bucket is an S3 server in this process.
type bucket struct {
	server *httptest.Server
	does   string
	deny   atomic.Bool
	place  string
}

func startBucket(does string) (*bucket, error) {
	memory := s3mem.New()
	if err := memory.CreateBucket("soaks"); err != nil {
		return nil, err
	}
	b := &bucket{does: does}
	faker := gofakes3.New(memory).Server()
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.answer(faker, w, r) }))
	name := "soaks"
	if does == bucketMissing {
		name = "none"
	}
	b.place = "s3://" + name + "/all?region=us-east-1&use_path_style=true&endpoint=" + b.server.URL
	if does == bucketGone {
		b.server.Close()
	}
	return b, nil
}

func (b *bucket) stop() {
	if b.does != bucketGone {
		b.server.Close()
	}
}

func (b *bucket) answer(faker http.Handler, w http.ResponseWriter, r *http.Request) {
	object := strings.Contains(r.URL.Path, ".json.gz")
	switch {
	case b.deny.Load() && r.Method == http.MethodPut:
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("<Error><Code>AccessDenied</Code></Error>"))
	case object && r.Method == http.MethodGet && b.does == bucketLost:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("<Error><Code>NoSuchKey</Code></Error>"))
	case object && r.Method == http.MethodGet && (b.does == bucketCut || b.does == bucketFlip):
		b.spoiled(faker, w, r)
	default:
		faker.ServeHTTP(w, r)
	}
}

// spoiled answers with an object that is not as it was stored.
func (b *bucket) spoiled(faker http.Handler, w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	r.Header.Del("Range")
	faker.ServeHTTP(answer, r)
	what := tamperFlip
	if b.does == bucketCut {
		what = tamperCut
	}
	body := spoil(what, answer.Body.Bytes())
	for name, values := range answer.Header() {
		if name != "Content-Length" && name != "Etag" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body)
}
