package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/gradwire/gradwire/cluster/refusal"
)

const (
	// credentialSources names the sources of credentials, for errors.
	credentialSources = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials " +
		"(AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE)"
	// dialTimeout is the timeout for a connection to the endpoint, and idleTimeout the timeout for a
	// connection on which no byte moves within a request.
	dialTimeout = 5 * time.Second
	idleTimeout = 30 * time.Second
)

// bucket is a store below a path of an S3 bucket.
type bucket struct {
	core     *minio.Core
	at       Address
	endpoint string
}

var _ Store = &bucket{}

// newS3 returns the store of an address. Endpoint and region come from the environment variables of the AWS
// tools, credentials from these or from ~/.aws/credentials.
func newS3(at Address) (*bucket, error) {
	endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	if endpoint != "" {
		region = cmp.Or(region, "us-east-1") // default region of other servers, such as MinIO
	}
	u, err := url.Parse(cmp.Or(endpoint, "https://s3.amazonaws.com"))
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, refusal.Input(errors.New("AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL is no address of a server; " +
			"http://HOST:PORT or https://HOST is accepted"))
	}
	transport, err := minio.DefaultTransport(u.Scheme == "https")
	if err != nil {
		return nil, err
	}
	transport.DialContext = dial
	keys := credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
	})
	if v, err := keys.GetWithContext(nil); err != nil || v.AccessKeyID == "" || v.SecretAccessKey == "" {
		return nil, refusal.Input(fmt.Errorf("%v: no credentials for this store; they are read from %s", at,
			credentialSources))
	}
	core, err := minio.NewCore(u.Host, &minio.Options{
		Creds: keys, Secure: u.Scheme == "https", Region: region, MaxRetries: 1, Transport: transport,
	})
	if err != nil {
		return nil, refusal.Input(fmt.Errorf("%v: %w", at, err))
	}
	return &bucket{core, at, u.Scheme + "://" + u.Host}, nil
}

// dial connects to an endpoint.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	return conn{c}, err
}

// conn is a connection with idleTimeout. A timeout for whole requests would fail large objects on slow
// links.
type conn struct{ net.Conn }

func (c conn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write also extends the timeout of the pending read of the answer.
func (c conn) Write(b []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// key is the key in the bucket.
func (b *bucket) key(key string) string { return path.Join(b.at.Path, key) }

// Put uploads an object by one request.
func (b *bucket) Put(ctx context.Context, key string, content []byte) error {
	sum := sha256.Sum256(content)
	_, err := b.core.PutObject(ctx, b.at.Bucket, b.key(key), bytes.NewReader(content), int64(len(content)), "",
		hex.EncodeToString(sum[:]), minio.PutObjectOptions{DisableMultipart: true})
	return b.explain("writing", key, err)
}

// Get downloads an object.
func (b *bucket) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	body, _, _, err := b.core.GetObject(ctx, b.at.Bucket, b.key(key), minio.GetObjectOptions{})
	if err != nil {
		return nil, b.explain("reading", key, err)
	}
	defer body.Close() //nolint:errcheck // it was only read
	content, err := readAll(body, b.at.Join(key).String(), limit)
	return content, b.explain("reading", key, err)
}

// List lists the keys below the address.
func (b *bucket) List(ctx context.Context, prefix string) (keys []string, err error) {
	below := b.at.Path
	if below != "" {
		below += "/"
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for o := range b.core.Client.ListObjects(ctx, b.at.Bucket, minio.ListObjectsOptions{Prefix: below + prefix,
		Recursive: true}) {
		if o.Err != nil {
			return nil, b.explain("listing", prefix, o.Err)
		}
		keys = append(keys, strings.TrimPrefix(o.Key, below))
	}
	return sorted(keys), ctx.Err()
}

// Delete removes an object.
func (b *bucket) Delete(ctx context.Context, key string) error {
	err := b.core.RemoveObject(ctx, b.at.Bucket, b.key(key), minio.RemoveObjectOptions{})
	if err = b.explain("deleting", key, err); errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Hints that several error codes share.
const (
	readFrom    = "; credentials are read from " + credentialSources
	otherRegion = "the bucket lies in another region; AWS_REGION must name it"
	otherServer = "the server does not accept this request; is the endpoint one of S3?"
)

// hints say how to mend permanent errors, by the error code of S3.
var hints = map[string]string{
	"NoSuchBucket":      "there is no such bucket; make it, or name one that exists",
	"InvalidBucketName": "a bucket's name has 3 to 63 lower-case letters, digits, dots and dashes",
	"AccessDenied": "access is denied; s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket must be " +
		"allowed for the credentials of " + credentialSources,
	"AllAccessDisabled":            "access to this bucket is disabled",
	"InvalidAccessKeyId":           "the store does not know this access key" + readFrom,
	"SignatureDoesNotMatch":        "the secret key is not the access key's" + readFrom,
	"ExpiredToken":                 "the credentials have expired" + readFrom,
	"InvalidToken":                 "the session token is invalid" + readFrom,
	"RequestTimeTooSkewed":         "the clock of this machine differs too much from the store's; set it, as by NTP",
	"AuthorizationHeaderMalformed": otherRegion,
	"PermanentRedirect":            otherRegion,
	"MethodNotAllowed":             otherServer,
	"NotImplemented":               otherServer,
}

// permanentError is an error that no retry can cure.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// explain names operation, address, bucket and endpoint in an error, and says how to mend it.
func (b *bucket) explain(doing, key string, err error) error {
	if err == nil || errors.Is(err, ErrDamaged) {
		return err
	}
	where := fmt.Sprintf("%s %s (bucket %q at %s)", doing, b.at.Join(key), b.at.Bucket, b.endpoint)
	said := minio.ToErrorResponse(err)
	hint, known := hints[said.Code]
	if !known && said.StatusCode == http.StatusForbidden {
		hint, known = hints["AccessDenied"], true
	}
	var dns *net.DNSError
	switch {
	case said.Code == "NoSuchKey", said.Code == "NoSuchVersion":
		return fmt.Errorf("%s: %w", where, ErrNotFound)
	case known:
		return refusal.Input(permanentError{fmt.Errorf("%s: %s", where, hint)})
	case said.StatusCode >= 400 && said.StatusCode < 500 && said.StatusCode != http.StatusRequestTimeout &&
		said.StatusCode != http.StatusTooManyRequests && said.StatusCode != http.StatusConflict:
		return permanentError{fmt.Errorf("%s: %s %s", where, said.Code, said.Message)}
	case errors.As(err, &dns), errors.As(err, new(*net.OpError)):
		return fmt.Errorf("%s: the endpoint cannot be reached: %w; AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL names it",
			where, inner(err))
	case said.StatusCode != 0:
		return fmt.Errorf("%s: the server answers %d %s %s", where, said.StatusCode, said.Code, said.Message)
	}
	return fmt.Errorf("%s: %w", where, inner(err))
}

// inner returns an error without the address of its request, which explain names.
func inner(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}

// A failed request is retried after a pause, and the pauses double.
const (
	attempts   = 6
	firstPause = 200 * time.Millisecond
)

// retrying retries failed requests.
type retrying struct {
	Store

	mu     sync.Mutex // held while notify is called
	notify func(string)
}

// retry calls do until it succeeds, fails permanently, or has failed attempts times.
func (p *retrying) retry(ctx context.Context, do func() error) error {
	for n, pause := 1, firstPause; ; n, pause = n+1, 2*pause {
		err := do()
		if ctx.Err() != nil && err != nil && !errors.Is(err, ctx.Err()) {
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		}
		if err == nil || ctx.Err() != nil || errors.As(err, new(permanentError)) || errors.Is(err, ErrNotFound) ||
			errors.Is(err, ErrDamaged) {
			return err
		}
		if n == attempts {
			return fmt.Errorf("%w (tried %d times)", err, n)
		}
		pause := pause/2 + rand.N(pause/2)
		p.note(fmt.Sprintf("%v; tried again in %v", err, pause.Round(time.Millisecond)))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		}
	}
}

// note reports a failed request.
func (p *retrying) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.notify != nil {
		p.notify(text)
	}
}

// Put retries, which is safe: the same bytes go to the same key.
func (p *retrying) Put(ctx context.Context, key string, content []byte) error {
	return p.retry(ctx, func() error { return p.Store.Put(ctx, key, content) })
}

// Get retries.
func (p *retrying) Get(ctx context.Context, key string, limit int64) (content []byte, err error) {
	err = p.retry(ctx, func() error { content, err = p.Store.Get(ctx, key, limit); return err })
	return content, err
}

// List retries.
func (p *retrying) List(ctx context.Context, prefix string) (keys []string, err error) {
	err = p.retry(ctx, func() error { keys, err = p.Store.List(ctx, prefix); return err })
	return keys, err
}

// Delete retries.
func (p *retrying) Delete(ctx context.Context, key string) error {
	return p.retry(ctx, func() error { return p.Store.Delete(ctx, key) })
}
