# Run in a container of the node image, step by step, to put images into it that are unpacked already.
# containerd works on a volume (it cannot unpack on the container's own overlay file system).
set -eu
work=/prepare
root=$work/containerd
snapshots=$root/io.containerd.snapshotter.v1.overlayfs/snapshots
ctr() { command ctr --namespace=k8s.io "$@"; }

case $1 in
start)
    cp -a /var/lib/containerd $root
    containerd --root $root >$work/log 2>&1 </dev/null &
    echo $! >$work/pid
    for _ in $(seq 100); do
        if command ctr version >/dev/null 2>&1; then exit 0; fi
        sleep 0.1
    done
    tail -5 $work/log >&2
    exit 1
    ;;
finish)
    # What cannot be unpacked for this platform stays packed, and is unpacked when it is first used.
    packed=
    for digest in $(ctr images list | awk 'NR > 1 { print $3 }' | sort -u); do
        ctr snapshots --snapshotter overlayfs unpack "$digest" >/dev/null 2>&1 || packed="$packed $digest"
    done
    # A directory that hides all below it is marked by an attribute that Docker would not keep.
    if find $snapshots -type d -print0 |
        tar --null --no-recursion --xattrs --xattrs-include=trusted.overlay.opaque -cf - -T - 2>/dev/null |
        grep -aq trusted.overlay.opaque; then
        echo "a layer hides a whole directory" >&2
        exit 3
    fi
    # The bytes of a layer are not needed once it is unpacked. containerd would delete them some time
    # after it has forgotten them, and is stopped before that.
    blobs=$root/io.containerd.content.v1.content/blobs/sha256
    large=
    if [ -z "$packed" ]; then large=$(find $blobs -type f -size +1000k); fi
    for blob in $large; do ctr content rm "sha256:${blob##*/}" >/dev/null; done
    kill "$(cat $work/pid)"
    while kill -0 "$(cat $work/pid)" 2>/dev/null && ! grep -q '^State:.*Z' "/proc/$(cat $work/pid)/status"; do sleep 0.1; done
    rm -f $large
    # Docker takes a device 0:0 for a deletion: these are kept as a list, and made again at boot.
    mkdir -p /k8tre
    cd $snapshots
    find . -type c -print0 >/k8tre/whiteouts
    find . -type c -delete
    rm -rf /var/lib/containerd
    cp -a $root /var/lib/containerd
    cat >/k8tre/make-whiteouts <<'SCRIPT'
#!/bin/bash
cd /var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots || exit 0
while IFS= read -r -d '' path; do
    [ -e "$path" ] || [ ! -d "${path%/*}" ] || mknod "$path" c 0 0
done </k8tre/whiteouts
SCRIPT
    chmod 755 /k8tre/make-whiteouts
    mkdir -p /etc/systemd/system/containerd.service.d
    printf '[Service]\nExecStartPre=-/k8tre/make-whiteouts\n' >/etc/systemd/system/containerd.service.d/k8tre.conf
    ;;
esac
