//! The tree that the links of a run make of its nodes: a chain, and links that join further nodes to it.
//!
//! Does not depend on what a link is like. Link `i` has the directions `2 i`, in which it is described, and `2 i + 1`.

use std::collections::HashMap;

use super::error::{ConfigErrorKind, ConfigErrors, KeyPath, PathStep};
use super::{DirectionConfig, FlowConfig, PathConfig};

/// How a node is joined to those before it.
#[derive(Clone, Copy, Debug)]
struct Joint {
    /// The node nearer to the root.
    parent: usize,
    /// Link direction that leads there.
    up: usize,
    /// Links between the node and the root.
    depth: usize,
}

/// The nodes of a path, by their index there, and the way between any two of them.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Of each node.
    joints: Vec<Joint>,
    /// Of each link: the nodes at which its forward direction begins and ends.
    ends: Vec<[usize; 2]>,
}

/// What keeps a link from joining a node to a tree: the number of the link, its key, and the error.
pub(super) type Misplaced = (usize, Option<&'static str>, ConfigErrorKind);

impl Tree {
    /// The tree of a path whose number of links fits its nodes.
    ///
    /// # Errors
    /// The first link that joins no new node to those before it.
    pub(super) fn of(path: &PathConfig) -> Result<Self, Misplaced> {
        let names = path.nodes.iter().enumerate();
        let sites: HashMap<&str, usize> = names.map(|(i, name)| (name.as_str(), i)).collect();
        let mut joints: Vec<Option<Joint>> = vec![None; path.nodes.len()];
        if let Some(root) = joints.first_mut() {
            *root = Some(Joint {
                parent: 0,
                up: 0,
                depth: 0,
            });
        }
        let mut ends = Vec::with_capacity(path.links.len());
        for (number, link) in path.links.iter().enumerate() {
            let find = |key: &'static str, name: &Option<String>, next: usize| match name {
                None => Ok(next),
                Some(name) => sites.get(name.as_str()).copied().ok_or_else(|| {
                    let (name, nodes) = (name.clone(), path.nodes.clone());
                    (
                        number,
                        Some(key),
                        ConfigErrorKind::UnknownNode { name, nodes },
                    )
                }),
            };
            let from = find("from", &link.from, number)?;
            let to = find("to", &link.to, number + 1)?;
            let between = |from: usize, to: usize| [from, to].map(|i| path.nodes[i].clone());
            let (parent, node, up) = match (joints[from], joints[to]) {
                (Some(_), None) => (from, to, 2 * number + 1),
                (None, Some(_)) => (to, from, 2 * number),
                (Some(_), Some(_)) => {
                    let nodes = between(from, to);
                    return Err((number, None, ConfigErrorKind::JoinedAlready { nodes }));
                }
                (None, None) => {
                    let nodes = between(from, to);
                    return Err((number, None, ConfigErrorKind::NotJoined { nodes }));
                }
            };
            let depth = joints[parent].map_or(0, |joint| joint.depth) + 1;
            joints[node] = Some(Joint { parent, up, depth });
            ends.push([from, to]);
        }
        // As many links as further nodes, each of which joined one.
        let joints = joints.into_iter().flatten().collect();
        Ok(Self { joints, ends })
    }

    /// Link directions from node `from` to node `to`, in their order.
    pub fn way(&self, from: usize, to: usize) -> Vec<usize> {
        let (mut here, mut there) = (from, to);
        let (mut way, mut back) = (Vec::new(), Vec::new());
        while here != there {
            let (own, other) = (self.joints[here], self.joints[there]);
            if own.depth >= other.depth {
                way.push(own.up);
                here = own.parent;
            } else {
                back.push(other.up ^ 1);
                there = other.parent;
            }
        }
        way.extend(back.into_iter().rev());
        way
    }

    /// Nodes between `from` and `to`, in the order of the way.
    pub fn between(&self, from: usize, to: usize) -> Vec<usize> {
        let mut way = self.way(from, to);
        way.pop();
        let ends = way
            .into_iter()
            .map(|direction| self.ends[direction / 2][1 - direction % 2]);
        ends.collect()
    }
}

impl PathConfig {
    /// The tree that the links make of the nodes.
    ///
    /// # Errors
    /// The first link that joins no new node to those before it.
    pub(crate) fn tree(&self) -> Result<Tree, ConfigErrors> {
        Tree::of(self).map_err(|(number, key, kind)| {
            let mut steps = KeyPath::root("path").0;
            steps.extend([PathStep::Key("links".to_owned()), PathStep::Index(number)]);
            steps.extend(key.map(|key| PathStep::Key(key.to_owned())));
            ConfigErrors::one(KeyPath(steps), kind)
        })
    }

    /// The link direction that leads from `node` back towards the data sender of `flow`.
    pub(crate) fn back_from(&self, tree: &Tree, flow: &FlowConfig, node: &str) -> Option<usize> {
        let (from, _) = self
            .ends("flows", flow.from.as_deref(), flow.to.as_deref())
            .ok()?;
        let site = self.nodes.iter().position(|name| name == node)?;
        tree.way(from, site).last().map(|number| number ^ 1)
    }

    /// The last node of the chain that begins with the first one.
    pub(super) fn last(&self) -> usize {
        let chain = self
            .links
            .iter()
            .take_while(|link| link.from.is_none() && link.to.is_none());
        chain.count()
    }

    /// What link direction `number` is like.
    pub(crate) fn direction(&self, number: usize) -> &DirectionConfig {
        let link = &self.links[number / 2];
        if number % 2 == 0 {
            &link.forward
        } else {
            &link.reverse
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path a-b-c, to which `links` (from, to) join d, e and f.
    fn tree(links: &[[&str; 2]]) -> Result<Tree, Misplaced> {
        let direction = r#"{"delay_ns": 1}"#;
        let both = format!(r#""forward": {direction}, "reverse": {direction}"#);
        let mut texts = vec![format!(r#"{{"name": "l", {both}}}"#); 2];
        for [from, to] in links {
            texts.push(format!(
                r#"{{"name": "l", "from": "{from}", "to": "{to}", {both}}}"#
            ));
        }
        let nodes = r#"["a", "b", "c", "d", "e", "f"]"#;
        let text = format!(r#"{{"nodes": {nodes}, "links": [{}]}}"#, texts.join(","));
        Tree::of(&serde_json::from_str(&text).expect("well-formed"))
    }

    #[test]
    fn there_is_one_way_between_any_two_nodes_and_back() {
        let tree = tree(&[["d", "b"], ["c", "e"], ["f", "d"]]).expect("a tree");
        let [first, fork, last, joined, leaf, far] = [0, 1, 2, 3, 4, 5];
        assert_eq!(
            (tree.way(first, last), tree.between(first, last)),
            (vec![0, 2], vec![fork])
        );
        assert_eq!(
            (tree.way(last, first), tree.between(last, first)),
            (vec![3, 1], vec![fork])
        );
        assert_eq!(tree.way(far, leaf), [8, 4, 2, 6]);
        assert_eq!(tree.between(far, leaf), [joined, fork, last]);
        assert_eq!(
            (tree.way(leaf, far), tree.between(leaf, far)),
            (vec![7, 3, 5, 9], vec![last, fork, joined])
        );
        assert_eq!(
            (tree.way(first, far), tree.between(first, far)),
            (vec![0, 5, 9], vec![fork, joined])
        );
        assert_eq!(
            (tree.way(fork, fork), tree.between(fork, last)),
            (vec![], vec![])
        );
    }

    #[test]
    fn a_link_that_joins_no_new_node_is_refused() {
        let refused =
            |links| tree(links).map_err(|(number, key, kind)| (number, key, format!("{kind:?}")));
        let (number, key, kind) =
            refused(&[["d", "b"], ["d", "c"], ["f", "d"]]).expect_err("a cycle");
        assert_eq!((number, key), (3, None));
        assert_eq!(kind, r#"JoinedAlready { nodes: ["d", "c"] }"#);
        let (number, _, kind) = refused(&[["e", "f"], ["d", "c"], ["f", "d"]]).expect_err("apart");
        assert_eq!(
            (number, kind.as_str()),
            (2, r#"NotJoined { nodes: ["e", "f"] }"#)
        );
        let (number, key, _) = refused(&[["d", "x"]]).expect_err("unknown");
        assert_eq!((number, key), (2, Some("to")));
        let (number, ..) = refused(&[["b", "b"]]).expect_err("to itself");
        assert_eq!(number, 2);
    }
}
