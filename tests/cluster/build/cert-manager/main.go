// Command cert-manager is cert-manager's controllers for self-signed issuers, and its injector of CAs for webhooks, in one process. Its own
// programs are modules that the module proxy does not serve; and they carry the clients of every DNS provider and cloud.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/api"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/util"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

func main() {
	kubeconfig := flag.String("cluster", "", "kubeconfig of the cluster")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	work, ctx := errgroup.WithContext(ctx)
	if err := issue(ctx, work, *kubeconfig); err != nil {
		log.Fatal(err)
	}
	if err := inject(ctx, work, *kubeconfig); err != nil {
		log.Fatal(err)
	}
	if err := work.Wait(); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// issue runs every controller that is imported above.
func issue(ctx context.Context, work *errgroup.Group, kubeconfig string) error {
	options := controller.ContextOptions{Kubeconfig: kubeconfig, KubernetesAPIQPS: 100, KubernetesAPIBurst: 100}
	options.ClusterResourceNamespace = "kube-system"
	options.CertificateRequestMinimumBackoffDuration = time.Second
	options.CertificateRequestMaximumBackoffDuration = time.Minute
	factory, err := controller.NewContextFactory(ctx, options)
	if err != nil {
		return err
	}
	for _, build := range controller.Known() {
		one, err := build(factory)
		if err != nil {
			return err
		}
		work.Go(func() error { return one.Run(1, ctx) })
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return nil
}

// inject writes CAs into webhook configurations.
func inject(ctx context.Context, work *errgroup.Group, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	if err := scheme.AddToScheme(api.Scheme); err != nil {
		return err
	}
	// Its first part is the name under which the injector's writes are known.
	config = util.RestConfigWithUserAgent(config, "cainjector")
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: api.Scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	err = cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			"mutatingwebhookconfiguration":   true,
			"validatingwebhookconfiguration": true,
		},
	})
	if err != nil {
		return err
	}
	work.Go(func() error { return manager.Start(ctx) })
	return nil
}
