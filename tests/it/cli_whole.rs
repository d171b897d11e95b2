//! tmp
use super::support::desk::{Desk};
#[tokio::test(flavor = "multi_thread")]
async fn tmp() {
    let desk = Desk::new().await;
    let t = std::time::Instant::now();
    let up = desk.run(&["dev", "up", "alice", "--sample", "-v"]).await;
    eprintln!("{:?} {}", t.elapsed(), up.stderr);
    let t = std::time::Instant::now();
    let up = desk.run(&["dev", "up", "alice", "--sample", "-v", "-o", "json"]).await;
    eprintln!("{:?} {} {}", t.elapsed(), up.stderr, up.stdout);
    let t = std::time::Instant::now();
    let up = desk.run(&["dev", "status", "alice", "-o", "json"]).await;
    eprintln!("{:?} {} {}", t.elapsed(), up.stderr, up.stdout);
    let up = desk.run(&["dev", "plan", "alice", "-o", "json"]).await;
    eprintln!("{:?} {} {}", t.elapsed(), up.stderr, up.stdout);
    let up = desk.run(&["dev", "list", "-o", "json"]).await;
    eprintln!("{:?} {} {}", t.elapsed(), up.stderr, up.stdout);
    let up = desk.run(&["dev", "down", "alice", "--dry-run"]).await;
    eprintln!("{:?} {} {}", t.elapsed(), up.stderr, up.stdout);
    let t = std::time::Instant::now();
    let up = desk.run(&["dev", "down", "alice", "-v"]).await;
    eprintln!("{:?} {} {}", t.elapsed(), up.stderr, up.stdout);
}
