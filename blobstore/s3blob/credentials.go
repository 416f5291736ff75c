package s3blob

import (
	"net/http"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Credentials are what requests are signed with. The zero value is none.
type Credentials struct {
	provider *credentials.Credentials
}

// StaticCredentials returns credentials that stay the same. The session token
// is for temporary ones and mostly "".
func StaticCredentials(accessKey, secretKey, sessionToken string) Credentials {
	return Credentials{credentials.NewStaticV4(accessKey, secretKey, sessionToken)}
}

// roleTimeout bounds a request for the credentials of a role; no other request
// goes out meanwhile.
const roleTimeout = 5 * time.Second

// AWSCredentials returns the first credentials that are found where programs
// for AWS look for them: in the variables AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, in the file ~/.aws/credentials
// (AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE), and from the role of the pod, the
// container or the machine. They are looked for when they are needed and again
// when they expire. Where there are none, requests go out unsigned, and are
// refused.
func AWSCredentials() Credentials {
	client := &http.Client{Transport: newTransport(), Timeout: roleTimeout}
	return Credentials{credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: client},
	})}
}
